//! What start tags say: the attributes of suites, testcases, verdicts and properties, taken in.
//! Must not know tokens beyond the current tag, or verdicts.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hasher};

use domain::Status;

use super::case::{Case, Verdict, What, said};
use super::dialect::{Dialect, Suite, is_unstable_path};
use super::notices::Kind;
use super::{Element, Junit};
use crate::attachments;
use crate::error::ReportError;
use crate::event::{Note, Sign};
use crate::external_id;
use crate::seconds::Time;
use crate::text::{self, Bounded, Oddities};

/// A duration beyond this is hardly in seconds, in microseconds: 3 hours.
const PLAUSIBLE_US_MAX: u64 = 3 * 3600 * 1_000_000;

/// Attributes of a suite whose order is looked at.
const ORDER_MAX: usize = 8;

impl Junit<'_> {
    pub(super) fn start_root(&mut self) -> Result<(), ReportError> {
        if !self.frames.is_empty() {
            return Ok(());
        }
        let mut odd = Oddities::default();
        let name = self.xml.attribute(b"name").map(|n| text::value(n, &mut odd).into_owned());
        self.dialect = Dialect::of_root(name.as_deref().unwrap_or_default(), self.xml.attribute(b"id").is_some());
        self.document.root_claim = self.xml.attribute(b"tests").and_then(count);
        self.odd(odd)
    }

    pub(super) fn start_suite(&mut self) -> Result<(), ReportError> {
        let mut odd = Oddities::default();
        self.suites_seen += 1;
        let mut suite = Suite { number: self.suites_seen, ..Suite::default() };
        let mut package = None;
        let mut order: [&[u8]; ORDER_MAX] = [b""; ORDER_MAX];
        for (i, (name, raw)) in self.xml.attributes().enumerate() {
            if let Some(slot) = order.get_mut(i) {
                *slot = name;
            }
            match name {
                b"name" => suite.name = name_of(raw, &mut odd).into_owned(),
                b"package" => package = Some(name_of(raw, &mut odd).into_owned()),
                b"hostname" => suite.hostname = Some(name_of(raw, &mut odd).into_owned()),
                b"timestamp" => suite.stamp = stamp(raw),
                b"tests" => suite.claimed = count(raw),
                _ => {}
            }
        }
        suite.full_name = package.filter(|p| !p.is_empty()).map(|p| format!("{p}.{}", suite.name));
        self.dialect = self.dialect.of_suite(&suite, &order, self.frames.is_empty());
        if self.suites.is_empty()
            && let Some(claimed) = suite.claimed
        {
            *self.document.suites_claim.get_or_insert(0) += claimed;
        }
        if is_unstable_path(&suite.name) {
            let line = self.line();
            self.notices.note(Kind::AbsolutePath, line);
        }
        self.suites.push(suite);
        self.odd(odd)
    }

    pub(super) fn start_case(&mut self) -> Result<(), ReportError> {
        let mut odd = Oddities::default();
        if self.open_cases == self.cases.len() {
            self.cases.push(Case::default());
        }
        let case = &mut self.cases[self.open_cases];
        self.open_cases += 1;
        case.clear();
        let (mut seconds, mut duration) = (None, None);
        let mut unknown_status = false;
        for (name, raw) in self.xml.attributes() {
            match name {
                b"name" => replace(&mut case.name, &name_of(raw, &mut odd)),
                b"classname" => replace(&mut case.class, &name_of(raw, &mut odd)),
                b"class" if case.class.is_empty() => replace(&mut case.class, &name_of(raw, &mut odd)),
                b"time" => seconds = Some(crate::seconds::time(raw)),
                b"duration" => duration = Some(crate::seconds::time(raw)),
                b"status" | b"result" => {
                    if let Some(said) = said(&text::value(raw, &mut odd)) {
                        unknown_status |= said == super::case::Said::Unknown;
                        case.say(said);
                    }
                }
                _ => {}
            }
        }
        case.line = self.xml.line();
        if unknown_status {
            self.notices.note(Kind::UnknownStatus, case.line);
        }
        if let Some(time) = seconds.or(duration) {
            self.note_time(time);
            self.set_duration(time);
        }
        self.odd(odd)
    }

    pub(super) fn start_verdict(&mut self, verdict: Verdict, inside: Option<Element>) -> Result<(), ReportError> {
        if inside != Some(Element::Case) {
            let line = self.line();
            self.notices.note(Kind::SuiteVerdict, line);
            return Ok(());
        }
        let todo = verdict == Verdict::Skipped && self.xml.attribute(b"type") == Some(b"todo");
        if let Some(case) = self.case() {
            case.judge(verdict, todo);
        }
        let message = self.message()?;
        self.gather(What::Verdict(verdict), message, None);
        Ok(())
    }

    pub(super) fn start_attempt(&mut self, status: Status) -> Result<(), ReportError> {
        let message = self.message()?;
        let time = self.xml.attribute(b"time").map_or(Time::Absent, crate::seconds::time);
        self.note_time(time);
        let duration_us = match time {
            Time::Sure(us, _) => Some(us),
            _ => None,
        };
        self.gather(What::Attempt(status), message, duration_us);
        Ok(())
    }

    /// The `message` of the current tag, else its `type`, bounded.
    fn message(&mut self) -> Result<String, ReportError> {
        let mut odd = Oddities::default();
        let given = |name: &[u8]| self.xml.attribute(name).filter(|raw| !raw.trim_ascii().is_empty());
        let Some(raw) = given(b"message").or_else(|| given(b"type")) else { return Ok(String::new()) };
        let mut bounded = Bounded::part();
        bounded.push(text::value(raw, &mut odd).as_bytes());
        let (message, cut) = bounded.finish(&mut odd);
        if let Some(case) = self.case() {
            case.cut += u32::from(cut);
        }
        self.odd(odd)?;
        Ok(message)
    }

    pub(super) fn start_property(&mut self) -> Result<(), ReportError> {
        let Some(name) = self.xml.attribute(b"name") else { return Ok(()) };
        let Some(case) = self.cases[..self.open_cases].last_mut() else {
            self.dialect = self.dialect.of_property(name);
            return Ok(());
        };
        if self.attachments && attachments::is_property(name) {
            let raw = self.xml.attribute(b"value").map(|raw| text::value(raw, &mut Oddities::default()));
            attachments::name(&mut case.attachments, raw.map(Cow::into_owned));
            return Ok(());
        }
        let Some(source) = external_id::source(name) else { return Ok(()) };
        let mut odd = Oddities::default();
        match self.xml.attribute(b"value") {
            Some(raw) => external_id::from_property(&text::value(raw, &mut odd), source, &mut case.external_ids),
            None => self.gather(What::ExternalIds(source), String::new(), None),
        }
        self.odd(odd)
    }

    /// Notes what a time proves, or what is wrong with it.
    pub(super) fn note_time(&mut self, time: Time) {
        let kind = match time {
            Time::Sure(us, sign) => {
                if let Some(sign) = sign
                    && !std::mem::replace(&mut self.decimal_said[usize::from(sign == Sign::Comma)], true)
                {
                    self.notices.say(Note::Decimal(sign));
                }
                (us.0 > PLAUSIBLE_US_MAX).then_some(Kind::LongTime)
            }
            Time::Negative => Some(Kind::NegativeTime),
            Time::Unusable => Some(Kind::UnusableTime),
            Time::Doubtful { .. } | Time::Absent => None,
        };
        if let Some(kind) = kind {
            let line = self.line();
            self.notices.note(kind, line);
        }
    }

    pub(super) fn set_duration(&mut self, time: Time) {
        let Some(case) = self.case() else { return };
        case.timed |= time != Time::Absent;
        match time {
            Time::Sure(us, _) => case.duration_us = Some(us),
            Time::Doubtful { thousands, decimal } => {
                (case.duration_us, case.duration_with_comma_us) = (Some(thousands), Some(decimal));
            }
            Time::Absent | Time::Negative | Time::Unusable => {}
        }
    }
}

/// A name; one far beyond its bound is cut at once, to what it will be as part of an item, since many may be open.
fn name_of<'a>(raw: &'a [u8], odd: &mut Oddities) -> Cow<'a, str> {
    let name = text::value(raw, odd);
    if name.len() <= 2 * domain::limits::ITEM_PART_BYTES_MAX {
        return name;
    }
    Cow::Owned(domain::ItemName::new([""; 0], None, &name).name().to_owned())
}

fn replace(into: &mut String, text: &str) {
    into.clear();
    into.push_str(text);
}

/// A header's number; headers are hints, so what is no number is no claim.
fn count(raw: &[u8]) -> Option<u64> {
    std::str::from_utf8(raw).ok()?.trim().parse().ok()
}

/// A time stamp as a number that is equal for equal stamps.
fn stamp(raw: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(raw);
    hasher.finish()
}
