//! `TestLink` 1.9: XML-RPC with a key in one struct, errors as normal answers, executions that are appended. From the
//! vendor's source; numbers leave it as text, as its database gives them. Must not know the kernel.

mod files;
mod shown;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use shown::{is_true, none_as_text, number, shown_build, shown_case};

use crate::stubs::xml_rpc::{self, Called};
use crate::stubs::{Admin, Answer, Call, Kind, Ledger, RecordedRow, Repeat, Request, Row, Rows, Rule, Turn, Vendor};

const PREFIX: &str = "P";
const PROJECT: u64 = 1;
const PLAN: u64 = 3;
const SUITE: u64 = 2;
const PATH: [&str; 5] = ["lib", "api", "xmlrpc", "v1", "xmlrpc.php"];

/// What differs from one installation to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The one user's key.
    pub key: String,
    /// The site setting that lets executions be deleted.
    pub deletes: bool,
    /// The platforms of the plan, by number; then each result needs one.
    pub platforms: BTreeMap<u64, String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { key: "key".to_owned(), deletes: true, platforms: BTreeMap::new() }
    }
}

/// One execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    build: u64,
    case: u64,
    platform: u64,
    status: String,
    notes: String,
    at_ms: i64,
    files: Vec<(String, Vec<u8>)>,
}

#[derive(Debug, Clone)]
struct Build {
    id: u64,
    name: String,
    open: bool,
}

#[derive(Debug, Clone)]
struct Case {
    name: String,
    planned: bool,
}

/// Number and words of an error.
type Refusal = (i64, &'static str);
type Reply = Result<Value, Refusal>;

/// One installation with project `Shop` (prefix `P`), plan `Automated` and one suite (2).
#[derive(Debug, Clone)]
pub struct TestLink {
    /// May be changed at any time.
    pub options: Options,
    /// All executions; their rule is to append.
    pub executions: Rows<Execution>,
    builds: Vec<Build>,
    /// By external number; the number within is a hundred more.
    cases: BTreeMap<u64, Case>,
}

impl TestLink {
    /// An installation without cases and builds.
    pub fn new(options: Options) -> Self {
        let executions = Rows::new(Rule::honest(Repeat::Append), 501);
        Self { options, executions, builds: Vec::new(), cases: BTreeMap::new() }
    }

    /// One more case; its external number.
    pub fn add_case(&mut self, name: &str, planned: bool) -> u64 {
        let number = self.cases.len() as u64 + 1;
        self.cases.insert(number, Case { name: name.to_owned(), planned });
        number
    }

    /// One more build.
    pub fn add_build(&mut self, name: &str) -> u64 {
        let id = self.builds.len() as u64 + 11;
        self.builds.push(Build { id, name: name.to_owned(), open: true });
        id
    }

    fn reply(&mut self, call: &Call<'_>, method: &str, args: &Value) -> Reply {
        match method {
            "tl.about" | "tl.testLinkVersion" => return Ok(json!("1.9.20")),
            "tl.sayHello" | "tl.ping" => return Ok(json!("Hello!")),
            _ => {}
        }
        match args["devKey"].as_str() {
            None => return Err((100, "(no developer key)")),
            Some(key) if key != self.options.key => return Err((2000, "(developer key is invalid)")),
            Some(_) => {}
        }
        if args.get("testplanid").is_some_and(|_| number(args, "testplanid") != Some(PLAN)) {
            return Err((3000, "(test plan does not exist)"));
        }
        match method {
            "tl.checkDevKey" => Ok(json!(true)),
            "tl.getTestProjectByName" => match args["testprojectname"].as_str() {
                Some("Shop") => Ok(json!({ "id": PROJECT.to_string(), "name": "Shop", "prefix": PREFIX })),
                _ => Err((7011, "(test project does not exist)")),
            },
            "tl.getTestPlanByName" => match args["testplanname"].as_str() {
                Some("Automated") => Ok(json!([{ "id": PLAN.to_string(), "name": "Automated" }])),
                _ => Err((3033, "(test plan does not exist)")),
            },
            "tl.getTestPlanPlatforms" if self.options.platforms.is_empty() => Err((3041, "(no platforms)")),
            "tl.getTestPlanPlatforms" => {
                let all = self.options.platforms.iter();
                Ok(all.map(|(id, name)| json!({ "id": id.to_string(), "name": name, "notes": "" })).collect())
            }
            "tl.createBuild" => Ok(self.create_build(args)),
            "tl.getBuildsForTestPlan" => Ok(none_as_text(&self.builds.iter().map(shown_build).collect::<Vec<_>>())),
            "tl.closeBuild" => {
                let build = self.build(args)?;
                self.builds.iter_mut().filter(|other| other.id == build).for_each(|other| other.open = false);
                Ok(json!([{ "status": true, "operation": "closeBuild", "id": build, "message": "" }]))
            }
            "tl.reportTCResult" | "tl.setTestCaseExecutionResult" => self.report(call, args),
            "tl.getExecutionSet" => self.execution_set(call, args),
            "tl.getLastExecutionResult" => self.last(args),
            "tl.uploadExecutionAttachment" => self.add_file(call, args),
            "tl.deleteExecution" => self.delete(args),
            _ => self.case_reply(method, args),
        }
    }

    fn create_build(&mut self, args: &Value) -> Value {
        let name = args["buildname"].as_str().unwrap_or_default();
        let there = self.builds.iter().find(|build| build.name == name).map(|build| build.id);
        if let Some(id) = there {
            // Not an error's form, and not in an array.
            return json!({
                "status": false, "operation": "createBuild", "id": id, "message": "(build name exists in this plan)"
            });
        }
        let id = self.add_build(name);
        json!([{ "status": true, "operation": "createBuild", "id": id, "message": "Success!" }])
    }

    /// The build that is meant: by number, by name, or guessed.
    fn build(&self, args: &Value) -> Result<u64, Refusal> {
        if let Some(id) = number(args, "buildid") {
            return self
                .builds
                .iter()
                .find(|build| build.id == id)
                .map(|build| build.id)
                .ok_or((4000, "(no such build)"));
        }
        if let Some(name) = args["buildname"].as_str() {
            let found = self.builds.iter().find(|build| build.name == name);
            return found.map(|build| build.id).ok_or((4040, "(no such build name)"));
        }
        if args["guess"] == json!(false) {
            return Err((4020, "(build id not provided, and guessing is off)"));
        }
        self.builds.iter().rfind(|build| build.open).map(|build| build.id).ok_or((3031, "(plan has no builds)"))
    }

    fn case(&self, args: &Value) -> Result<u64, Refusal> {
        let external = args["testcaseexternalid"].as_str().and_then(|id| id.strip_prefix("P-")?.parse().ok());
        let found = external.or_else(|| number(args, "testcaseid")?.checked_sub(100));
        found.filter(|number| self.cases.contains_key(number)).ok_or((5040, "(no such test case)"))
    }

    fn planned(&self, args: &Value) -> Result<u64, Refusal> {
        let case = self.case(args)?;
        if self.cases[&case].planned { Ok(case) } else { Err((3030, "(test case is not in the test plan)")) }
    }

    fn platform(&self, args: &Value) -> Result<u64, Refusal> {
        if self.options.platforms.is_empty() {
            return Ok(0);
        }
        let by_name = || {
            let name = args["platformname"].as_str()?;
            self.options.platforms.iter().find(|(_, other)| *other == name).map(|(id, _)| *id)
        };
        let given = number(args, "platformid").filter(|id| self.options.platforms.contains_key(id));
        given.or_else(by_name).ok_or((3043, "(a platform is needed)"))
    }

    /// What a result would be, if it can be written.
    fn execution(&self, call: &Call<'_>, args: &Value) -> Result<Execution, Refusal> {
        let status = args["status"].as_str().unwrap_or_default();
        if !["p", "f", "b"].contains(&status) {
            return Err((6000, "(status is invalid)"));
        }
        let (case, platform, build) = (self.planned(args)?, self.platform(args)?, self.build(args)?);
        if !self.builds.iter().any(|other| other.id == build && other.open) {
            return Err((4000, "(build is closed)"));
        }
        let notes = call.kept(args["notes"].as_str().unwrap_or_default());
        Ok(Execution {
            build,
            case,
            platform,
            status: status.to_owned(),
            notes,
            at_ms: call.unix_ms(),
            files: Vec::new(),
        })
    }

    fn report(&mut self, call: &Call<'_>, args: &Value) -> Reply {
        let new = self.execution(call, args)?;
        let overwrite = is_true(&args["overwrite"]);
        let newest = self.executions.iter().rfind(|row| is_same(&row.data, &new)).map(|row| row.id);
        let id = match newest.filter(|_| overwrite).and_then(|id| self.executions.get_mut(id)) {
            Some(row) => {
                row.data = new;
                row.id
            }
            None => self.executions.write(call.now, new.clone(), |other| is_same(other, &new)).id(),
        };
        Ok(
            json!([{ "status": true, "operation": "reportTCResult", "overwrite": overwrite, "message": "Success!", "id": id }]),
        )
    }

    fn delete(&mut self, args: &Value) -> Reply {
        if !self.options.deletes {
            return Err((232, "(deleting executions is switched off)"));
        }
        let id = number(args, "executionid").filter(|id| self.executions.get(*id).is_some());
        let id = id.ok_or((231, "(no such execution)"))?;
        self.executions.retain(|row| row.id != id);
        Ok(json!([{ "status": true, "operation": "deleteExecution", "id": id, "message": "Success!" }]))
    }

    fn case_reply(&mut self, method: &str, args: &Value) -> Reply {
        match method {
            "tl.getTestCasesForTestPlan" => {
                let rows = self.cases.iter().filter(|(_, case)| case.planned).map(|(number, case)| {
                    let mut row = shown_case(*number, case);
                    row["exec_status"] = json!("n");
                    let rows: Value = match self.options.platforms.keys().next() {
                        None => json!([row]),
                        Some(_) => self.options.platforms.keys().map(|id| (id.to_string(), row.clone())).collect(),
                    };
                    ((number + 100).to_string(), rows)
                });
                let rows: serde_json::Map<String, Value> = rows.collect();
                Ok(if rows.is_empty() { json!("") } else { Value::Object(rows) })
            }
            "tl.getTestCasesForTestSuite" if number(args, "testsuiteid") != Some(SUITE) => {
                Err((8000, "(no such suite)"))
            }
            "tl.getTestCasesForTestSuite" => {
                let row = |(number, case): (&u64, &Case)| json!({ "id": (number + 100).to_string(), "name": case.name, "external_id": format!("{PREFIX}-{number}") });
                Ok(none_as_text(&self.cases.iter().map(row).collect::<Vec<_>>()))
            }
            "tl.getTestCase" => {
                let number = self.case(args)?;
                Ok(json!([shown_case(number, &self.cases[&number])]))
            }
            "tl.createTestCase" => {
                let name = args["testcasename"].as_str().unwrap_or_default();
                if args["authorlogin"].as_str() != Some("bot@example.com") {
                    return Err((10000, "(no user with this login)"));
                }
                if number(args, "testsuiteid") != Some(SUITE) || number(args, "testprojectid") != Some(PROJECT) {
                    return Err((8000, "(no such suite)"));
                }
                if args["actiononduplicatedname"] == json!("block") && self.cases.values().any(|case| case.name == name)
                {
                    return Err((5030, "(there is a test case with this name)"));
                }
                let number = self.add_case(name, false);
                let more = json!({ "id": number + 100, "external_id": number, "status_ok": 1, "version_number": 1 });
                Ok(json!([{
                    "status": true, "operation": "createTestCase", "id": number + 100, "additionalInfo": more, "message": "Success!"
                }]))
            }
            "tl.addTestCaseToTestPlan" => {
                let number = self.case(args)?;
                self.platform(args)?;
                match self.cases.get_mut(&number) {
                    Some(case) if !case.planned => case.planned = true,
                    _ => return Err((3045, "(link exists already)")),
                }
                Ok(
                    json!({ "status": true, "operation": "addTestCaseToTestPlan", "feature_id": number + 900, "message": "" }),
                )
            }
            _ => Err((50, "(not implemented here)")),
        }
    }
}

impl Vendor for TestLink {
    fn handle(&mut self, call: &Call<'_>) -> Turn<Self> {
        let Some(Called { method, params }) = read(call.request) else {
            return Answer::html(404, "<h1>Not Found</h1>").into();
        };
        let args = params.into_iter().next().unwrap_or(Value::Null);
        // Overwriting looks for the newest and inserts where there is none, without a lock.
        if method == "tl.reportTCResult" && is_true(&args["overwrite"]) {
            let new = self.execution(call, &args);
            if new.is_ok_and(|new| !self.executions.iter().any(|row| is_same(&row.data, &new))) {
                return Turn::gap("tl.reportTCResult", move |testlink: &mut Self, call| {
                    let mut plain = args.clone();
                    plain["overwrite"] = json!(false);
                    answered(testlink.reply(call, "tl.reportTCResult", &plain))
                });
            }
        }
        answered(self.reply(call, &method, &args))
    }

    fn classify(&self, request: &Request) -> Kind {
        let method = read(request).map(|called| called.method).unwrap_or_default();
        let name = method.strip_prefix("tl.").unwrap_or(&method).to_owned();
        let writes =
            ["create", "report", "set", "delete", "close", "add", "upload"].iter().any(|verb| name.starts_with(verb));
        if writes { Kind::Write(name) } else { Kind::Read(name) }
    }

    fn ledger(&self) -> Ledger {
        let row = |row: &Row<Execution>| RecordedRow {
            id: row.id.to_string(),
            cycle: row.data.build.to_string(),
            marker: row.data.notes.clone(),
            status: row.data.status.clone(),
            order: row.created.order,
            created_ms: row.data.at_ms,
            side: files::side(&row.data),
        };
        self.executions.iter().map(|found| (format!("{PREFIX}-{}", found.data.case), row(found))).collect()
    }

    fn problem(&self, status: u16, text: &str) -> Answer {
        Answer::html(status, &format!("<b>Fatal error</b>: {text}"))
    }

    fn admin(&mut self, act: &Admin) -> bool {
        match act {
            Admin::CloseCycle(build) => {
                let found = self.builds.iter_mut().find(|other| other.id.to_string() == *build);
                found.is_some_and(|build| std::mem::take(&mut build.open))
            }
            Admin::DeleteCycle(build) => {
                let before = self.builds.len();
                self.builds.retain(|other| other.id.to_string() != *build);
                self.executions.retain(|row| row.data.build.to_string() != *build);
                self.builds.len() < before
            }
            Admin::RemoveItem { item, .. } => {
                let number = item.strip_prefix("P-").and_then(|number| number.parse().ok());
                let case = number.and_then(|number: u64| self.cases.get_mut(&number));
                case.is_some_and(|case| std::mem::take(&mut case.planned))
            }
            Admin::RenameStatus { .. } | Admin::DeleteStatus(_) => false,
        }
    }
}

fn answered(reply: Reply) -> Turn<TestLink> {
    let value = reply.unwrap_or_else(|(code, message)| json!([{ "code": code, "message": message }]));
    xml_rpc::answer(&value).into()
}

fn read(request: &Request) -> Option<Called> {
    (request.route() == ("POST", PATH.to_vec())).then(|| xml_rpc::called(&request.body)).flatten()
}

fn is_same(one: &Execution, other: &Execution) -> bool {
    (one.build, one.case, one.platform) == (other.build, other.case, other.platform)
}
