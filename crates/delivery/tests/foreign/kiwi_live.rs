//! Kiwi TCMS: the adapter against the real server.

use std::sync::LazyLock;

use delivery::Secret;
use delivery::foreign::{Closing, CycleId, Kind, RowId, TargetSettings, Trouble};
use domain::marker::Found;
use proof::rigs::{self, Rig};
use serde_json::{Value, json};

use crate::given::settings_at;
use crate::live;

struct World {
    settings: TargetSettings,
    rig: Rig,
}

/// One server for all tests of this file; each has rounds and cases of its own.
static WORLD: LazyLock<Option<World>> = LazyLock::new(|| {
    let rig = rigs::or_skip(Rig::kiwi()).unwrap()?;
    make_plan(&rig);
    let own = json!({"version": rig.version(), "build": "made by us", "plan": "Automated"});
    let mut settings = settings_at(Kind::Kiwi, rig.url(), own);
    rig.product().clone_into(&mut settings.project);
    settings.user = Some(rig.user().to_owned());
    settings.token = Some(Secret::new(rig.password()));
    Some(World { settings, rig })
});

/// What people do in the product before results come: a plan.
fn make_plan(rig: &Rig) {
    let mut session = None;
    let mut call = |method: &str, params: Value| -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let (_, answer) = live::post(rig.rpc(), "application/json", session.as_deref(), &body);
        let answer: Value = serde_json::from_str(&answer).unwrap();
        if method == "Auth.login" {
            session = answer["result"].as_str().map(str::to_owned);
        }
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    };
    call("Auth.login", json!([rig.user(), rig.password()]));
    let version = call("Version.filter", json!([{"value": rig.version()}]))[0].clone();
    let kind = call("PlanType.filter", json!([{}]))[0]["id"].clone();
    let (product, version) = (&version["product"], &version["id"]);
    let plan = json!({
        "name": "Automated", "text": "", "product": product, "product_version": version, "is_active": true, "type": kind,
    });
    call("TestPlan.create", json!([plan]));
}

#[tokio::test(flavor = "multi_thread")]
async fn cases_are_made_once_and_found_again() {
    let Some(world) = &*WORLD else { return };
    live::cases_are_made_once_and_found_again(&world.settings).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cycle_is_found_by_its_tag_alone() {
    let Some(world) = &*WORLD else { return };
    live::a_cycle_is_found_by_its_tag_alone(&world.settings).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_leaves_one_execution_one_link_one_comment() {
    let Some(world) = &*WORLD else { return };
    let (run, entries) = live::a_repeat_replaces_and_a_changed_verdict_too(&world.settings).await;
    let by_case = |query: &str| live::counts(&world.rig.database(), query, &run);
    let executions = by_case("SELECT case_id, count(*) FROM testruns_testexecution WHERE run_id = ?1 GROUP BY case_id");
    assert_eq!(executions.len(), entries.len());
    assert!(executions.values().all(|count| *count == 1), "{executions:?}");
    let links = by_case(
        "SELECT e.case_id, count(*) FROM linkreference_linkreference l JOIN testruns_testexecution e \
         ON e.id = l.execution_id WHERE e.run_id = ?1 GROUP BY e.case_id",
    );
    assert_eq!(links, executions, "one link each, also where the verdict changed");
    let of_case = |at: usize| entries[at].case.as_str().parse::<i64>().unwrap();
    let comments = by_case(
        "SELECT e.case_id, count(*) FROM django_comments c JOIN testruns_testexecution e \
         ON CAST(e.id AS TEXT) = c.object_pk JOIN django_content_type t ON t.id = c.content_type_id \
         WHERE t.model = 'testexecution' AND e.run_id = ?1 GROUP BY e.case_id",
    );
    assert_eq!((comments[&of_case(0)], comments[&of_case(1)]), (2, 2), "one for each verdict");
    assert!((2..entries.len()).all(|at| comments[&of_case(at)] == 1), "{comments:?}");
    let history = by_case(
        "SELECT h.case_id, count(*) FROM testruns_historicaltestexecution h WHERE h.run_id = ?1 GROUP BY h.case_id",
    );
    let once = history[&of_case(7)] - 1;
    assert_eq!(history[&of_case(0)], 1 + 2 * once, "a verdict lengthens it, a repeat of what is there does not");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_entry_spoils_no_batch() {
    let Some(world) = &*WORLD else { return };
    live::a_bad_entry_spoils_no_batch(&world.settings).await;
}

/// Adding checks first and inserts then: it may leave several places, but the verdict goes into one of them.
#[tokio::test(flavor = "multi_thread")]
async fn writers_that_add_at_once_write_into_the_oldest_place() {
    let Some(world) = &*WORLD else { return };
    let (run, entries) = live::two_writers_at_once_leave_one_verdict(&world.settings).await;
    let by_case = |query: &str| live::counts(&world.rig.database(), query, &run);
    let verdicts = by_case(
        "SELECT case_id, count(*) FROM testruns_testexecution WHERE run_id = ?1 AND status_id > 3 GROUP BY case_id",
    );
    let places = by_case("SELECT case_id, count(*) FROM testruns_testexecution WHERE run_id = ?1 GROUP BY case_id");
    assert_eq!(verdicts.len(), entries.len());
    assert!(verdicts.values().all(|count| *count == 1), "{verdicts:?} in {places:?}");
    let rows = live::target(&world.settings).rows(&run, &[]).await.unwrap();
    let doubles: i64 = places.values().map(|count| count - 1).sum();
    assert_eq!(rows.len() as i64, verdicts.len() as i64 + doubles, "people see the places too many");
    let marked = rows.iter().filter(|row| matches!(row.marker, Found::Whole(_))).count();
    assert_eq!(marked, entries.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_this_version_cannot_do_it_refuses() {
    let Some(world) = &*WORLD else { return };
    let (run, _) = live::run_of(&world.settings, "refuses", 1).await;
    let target = live::target(&world.settings);
    let refusals = [target.delete(&run, &RowId::new("1")).await, target.delete_cycle(&CycleId::new("999999")).await];
    for refusal in refusals {
        assert!(matches!(&refusal, Err(Trouble::Refused(why)) if why.contains("has no Test")), "{refusal:?}");
    }
    target.close_cycle(&run, Closing::Complete).await.unwrap();
    let mut stranger = world.settings.clone();
    stranger.token = Some(Secret::new("guessed"));
    let answer = live::target(&stranger).rows(&run, &[]).await;
    assert!(matches!(answer, Err(Trouble::Denied(_))), "{answer:?}");
}
