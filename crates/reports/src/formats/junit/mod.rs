//! JUnit XML of every dialect, as a stream: the union of what Ant, Jenkins, Surefire and all the others write.
//! `case` holds the verdict, `dialect` identity and the meaning of repeats, `notices` what is said about a file.
//! Must not know how repeats are folded, or what a caller does with damage.

mod attributes;
mod case;
mod dialect;
mod notices;

use domain::{Attempt, Status};

use self::case::{Case, Gathered, Verdict, What};
use self::dialect::{Dialect, Name, Suite};
use self::notices::{Kind, Notices};
use crate::attachments::{self, Marks};
use crate::error::ReportError;
use crate::event::{Event, Note, Place, RawOutcome, Reader};
use crate::external_id;
use crate::formats::Input;
use crate::seconds::time;
use crate::source::Fault;
use crate::text::Oddities;
use crate::xml::{Cursor, Token, XmlError};

/// What an open element is to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    Suites,
    Suite,
    Case,
    Verdict(Verdict),
    Attempt(Status),
    Property,
    Time,
    Output,
    /// Nothing of ours; its text belongs to whatever is being gathered around it.
    Other,
}

/// An open element, and whether a text of its own is being gathered.
#[derive(Debug, Clone, Copy)]
struct Frame {
    element: Element,
    gathers: bool,
}

/// The current document of the file: several stand one behind the other.
#[derive(Debug, Default)]
struct Document {
    number: u32,
    cases: u64,
    /// Those of them that stand in a suite.
    in_suites: u64,
    /// Attempts that cases list; some writers count them in their headers.
    reruns: u64,
    /// What `tests=` of the root, and of the outermost suites together, claims.
    root_claim: Option<u64>,
    suites_claim: Option<u64>,
}

/// A JUnit XML report being read.
pub(crate) struct Junit<'a> {
    file: String,
    /// Files that cases name are wanted.
    attachments: bool,
    xml: Cursor<Input<'a>>,
    frames: Vec<Frame>,
    suites: Vec<Suite>,
    /// The first `open_cases` are open; the one behind them is the one finished last. Never moved, always reused.
    cases: Vec<Case>,
    open_cases: usize,
    /// A case was finished and is to be handed out.
    ready: bool,
    name: Name,
    gathered: Vec<Gathered>,
    dialect: Dialect,
    document: Document,
    suites_seen: u32,
    outcomes: u64,
    decimal_said: [bool; 2],
    mismatch_said: bool,
    notices: Notices,
    ended: bool,
    fault: Option<ReportError>,
}

impl Reader for Junit<'_> {
    fn next(&mut self) -> Result<Option<Event<'_>>, ReportError> {
        loop {
            if std::mem::take(&mut self.ready) {
                return Ok(Some(Event::Outcome(self.finished())));
            }
            if let Some(note) = self.notices.next() {
                return Ok(Some(Event::Note(note)));
            }
            if self.ended {
                return self.fault.take().map_or(Ok(None), Err);
            }
            if let Err(fault) = self.step() {
                self.end(Some(fault));
            }
        }
    }
}

impl<'a> Junit<'a> {
    /// At a root that is one of ours.
    pub(crate) fn new(file: &str, xml: Cursor<Input<'a>>, attachments: bool) -> Self {
        Self {
            attachments,
            file: file.to_owned(),
            xml,
            frames: Vec::new(),
            suites: Vec::new(),
            cases: Vec::new(),
            open_cases: 0,
            ready: false,
            name: Name::default(),
            gathered: Vec::new(),
            dialect: Dialect::default(),
            document: Document::default(),
            suites_seen: 0,
            outcomes: 0,
            decimal_said: [false; 2],
            mismatch_said: false,
            notices: Notices::default(),
            ended: false,
            fault: None,
        }
    }

    /// Says something about the file.
    pub(crate) fn warn(&mut self, line: Option<u64>, text: String) {
        self.notices.say(Note::Warning { line, text });
    }

    fn end(&mut self, fault: Option<ReportError>) {
        if fault.is_none() && self.outcomes == 0 {
            let claim = self.document.root_claim.max(self.document.suites_claim).unwrap_or(0);
            let claim = if claim > 0 { format!(", though its header claims {claim}") } else { String::new() };
            self.warn(None, format!("the report holds no test{claim}"));
        }
        self.notices.sum_up();
        self.fault = fault;
        self.ended = true;
    }

    /// Takes in one token.
    fn step(&mut self) -> Result<(), ReportError> {
        match self.xml.next() {
            Ok(Token::Start { empty }) => self.start(empty),
            Ok(Token::End) => {
                self.close();
                Ok(())
            }
            Ok(Token::Text) => self.text(),
            Ok(Token::CData) => {
                if let Some(gathered) = self.gathered.last_mut() {
                    gathered.text.push(self.xml.text());
                }
                Ok(())
            }
            Ok(Token::Eof) => {
                self.end(None);
                Ok(())
            }
            Err(XmlError::Broken(_)) if self.frames.is_empty() && self.document.number > 0 => {
                self.behind();
                Ok(())
            }
            Err(e) => Err(self.error(e)),
        }
    }

    /// What stands behind a whole report and is none: said, and no reason to lose the report.
    fn behind(&mut self) {
        let line = self.line();
        self.notices.note(Kind::TextBehind, line);
        self.end(None);
    }

    fn error(&mut self, error: XmlError) -> ReportError {
        let file = self.file.clone();
        let (line, column) = self.xml.position();
        let outcomes_before = self.outcomes;
        let damaged = |what| ReportError::Damaged { file: self.file.clone(), line, column, what, outcomes_before };
        match error {
            XmlError::Broken(what) => damaged(what),
            XmlError::Io(source) => match source.get_ref().and_then(|e| e.downcast_ref::<Fault>()) {
                Some(Fault::TooLarge(limit)) => ReportError::TooLarge { file, limit: *limit },
                Some(fault) => damaged(fault.to_string()),
                None => ReportError::Io { file, source },
            },
        }
    }

    fn line(&mut self) -> u64 {
        self.xml.line()
    }

    /// Counts what was odd; an entity that the file itself declares is more than odd.
    fn odd(&mut self, odd: Oddities) -> Result<(), ReportError> {
        if !odd.any() {
            return Ok(());
        }
        let line = self.line();
        if odd.entity && self.xml.entities_declared() {
            let what = "an entity is used that the report's own DOCTYPE declares".to_owned();
            return Err(ReportError::Dtd { file: self.file.clone(), line, what });
        }
        self.notices.odd(odd, line);
        Ok(())
    }

    fn text(&mut self) -> Result<(), ReportError> {
        if let Some(gathered) = self.gathered.last_mut() {
            let entity = gathered.push_text(self.xml.text());
            return self.odd(Oddities { entity, ..Oddities::default() });
        }
        if self.frames.is_empty() && self.document.number > 0 && !self.xml.text().trim_ascii().is_empty() {
            let line = self.xml.line_of_text();
            self.notices.note(Kind::TextBehind, line);
        }
        Ok(())
    }

    fn start(&mut self, empty: bool) -> Result<(), ReportError> {
        let inside = self.frames.last().map(|f| f.element);
        let element = element(self.xml.name(), inside, self.open_cases > 0);
        if inside.is_none() && !matches!(element, Element::Suites | Element::Suite | Element::Case) {
            self.xml.forget_open();
            self.behind();
            return Ok(());
        }
        let gathering = self.gathered.len();
        match element {
            Element::Suites => self.start_root()?,
            Element::Suite => self.start_suite()?,
            Element::Case => self.start_case()?,
            Element::Verdict(verdict) => self.start_verdict(verdict, inside)?,
            Element::Attempt(status) => self.start_attempt(status)?,
            Element::Property => self.start_property()?,
            Element::Time => self.gather(What::Time, String::new(), None),
            Element::Output if !empty => {
                return self.pass_output();
            }
            Element::Output | Element::Other => {}
        }
        self.frames.push(Frame { element, gathers: self.gathered.len() > gathering });
        if empty {
            self.close();
        }
        Ok(())
    }

    /// Captured output is passed over, and looked through for files only if somebody wants them.
    fn pass_output(&mut self) -> Result<(), ReportError> {
        let mut marks = (self.attachments && self.open_cases > 0).then(Marks::default);
        self.xml.skip_output(marks.as_mut()).map_err(|e| self.error(e))?;
        if let (Some(marks), Some(case)) = (marks, self.case()) {
            attachments::name(&mut case.attachments, marks.found);
        }
        Ok(())
    }

    fn gather(&mut self, what: What, message: String, duration_us: Option<domain::DurationUs>) {
        self.gathered.push(Gathered { what, message, duration_us, text: crate::text::Bounded::part() });
    }

    /// The innermost element ended.
    fn close(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        if frame.gathers
            && let Some(gathered) = self.gathered.pop()
        {
            self.finish_text(gathered);
        }
        match frame.element {
            Element::Suite => {
                self.suites.pop();
            }
            Element::Case => self.finish_case(),
            _ => {}
        }
        if self.frames.is_empty() {
            self.finish_document();
        }
    }

    fn finish_text(&mut self, mut gathered: Gathered) {
        let mut odd = Oddities::default();
        let (text, cut) = gathered.finish(&mut odd);
        if odd.any() {
            let line = self.line();
            self.notices.odd(odd, line);
        }
        let Some(case) = self.case() else { return };
        case.cut += u32::from(cut);
        match gathered.what {
            What::Verdict(verdict) => case.add_message(verdict, &text),
            What::Attempt(status) => {
                let message = Some(text).filter(|t| !t.is_empty());
                case.add_attempt(Attempt { status, duration_us: gathered.duration_us, message });
            }
            What::ExternalIds(source) => external_id::from_property(&text, source, &mut case.external_ids),
            What::Time if !case.timed => {
                let time = time(text.as_bytes());
                self.note_time(time);
                self.set_duration(time);
            }
            What::Time => {}
        }
    }

    /// The innermost open case, if any.
    fn case(&mut self) -> Option<&mut Case> {
        self.cases[..self.open_cases].last_mut()
    }

    fn finish_case(&mut self) {
        self.open_cases -= 1;
        let case = &mut self.cases[self.open_cases];
        external_id::from_name(&case.name, &mut case.external_ids);
        self.name.update(self.dialect, &self.suites, &case.class);
        self.document.reruns += case.attempts.len() as u64;
        self.document.cases += 1;
        self.document.in_suites += u64::from(!self.suites.is_empty());
        self.outcomes += 1;
        self.ready = true;
    }

    /// The case that was finished last.
    fn finished(&mut self) -> RawOutcome<'_> {
        let case = &mut self.cases[self.open_cases];
        let status = case.status();
        let (suite, stamp) = self.suites.last().map_or((0, 0), |s| (s.number, s.stamp));
        let mut odd = Oddities::default();
        let message = case.message(status, &mut odd);
        RawOutcome {
            suite: &self.name.suite,
            class: Some(self.name.class.as_str()).filter(|c| !c.is_empty()),
            name: &case.name,
            status,
            duration_us: case.duration_us,
            duration_with_comma_us: case.duration_with_comma_us,
            message,
            attempts: std::mem::take(&mut case.attempts),
            external_ids: std::mem::take(&mut case.external_ids),
            attachments: std::mem::take(&mut case.attachments),
            repeats: self.dialect.repeats(),
            place: Place { document: self.document.number, suite, stamp, line: case.line },
            has_verdict: case.has_verdict(),
            cut: case.cut,
        }
    }

    /// The root ended: headers are compared with what was there.
    fn finish_document(&mut self) {
        let Document { number, cases, in_suites, reruns, root_claim, suites_claim } =
            std::mem::take(&mut self.document);
        let holds = |claim: Option<u64>, n: u64| claim.is_some_and(|claim| claim == n || claim == n + reruns);
        let agreed = holds(root_claim, cases) || holds(suites_claim, in_suites);
        if cases > 0
            && !agreed
            && let Some(claim) = suites_claim.or(root_claim)
            && !std::mem::replace(&mut self.mismatch_said, true)
        {
            self.warn(None, format!("headers claim {claim} tests, but there are {cases} test elements; these count"));
        }
        self.document = Document { number: number + 1, ..Document::default() };
        if cases == 0 {
            (self.document.root_claim, self.document.suites_claim) = (root_claim, suites_claim);
        }
        self.suites.clear();
        self.xml.forget_open();
        self.dialect = Dialect::default();
    }
}

/// What an element is, by its local name and where it stands.
fn element(name: &[u8], inside: Option<Element>, in_case: bool) -> Element {
    let of_case = inside == Some(Element::Case);
    let of_suite = matches!(inside, Some(Element::Suite | Element::Suites));
    match name {
        b"testcase" => Element::Case,
        b"testsuite" if !in_case => Element::Suite,
        b"testsuites" if !in_case => Element::Suites,
        b"failure" if of_case || of_suite => Element::Verdict(Verdict::Failure),
        b"error" | b"warning" if of_case => Element::Verdict(Verdict::Error),
        b"error" if of_suite => Element::Verdict(Verdict::Error),
        b"skipped" | b"skip" | b"ignored" | b"disabled" if of_case => Element::Verdict(Verdict::Skipped),
        b"flakyFailure" | b"rerunFailure" if in_case => Element::Attempt(Status::Failed),
        b"flakyError" | b"rerunError" if in_case => Element::Attempt(Status::Errored),
        b"system-out" | b"system-err" => Element::Output,
        b"property" => Element::Property,
        b"time" if of_case => Element::Time,
        _ => Element::Other,
    }
}
