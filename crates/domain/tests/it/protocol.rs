//! The table of the design's section 6, row by row, over a few lines of engine that carry decisions out.

mod collisions;

use std::collections::BTreeMap;
use std::convert::Infallible;

use domain::protocol::{Decision, DifferenceClass, Doubt, Known, KnownRevision, Recorded, Refusal, decide};
use domain::verdict::{Light, RevisionKind, View};
use domain::*;

/// What a delivery says; the rest is the same for all.
#[derive(Clone)]
struct Say {
    items: Vec<(String, Status)>,
    ordinal: Option<u64>,
    executor: Option<&'static str>,
    incarnation: Option<u128>,
    policy: OnDifference,
    outside_ci: bool,
    job: &'static str,
    shard: Option<&'static str>,
    commit: Option<&'static str>,
    seconds: u64,
    key: &'static str,
    files: &'static str,
}

fn say(items: impl IntoIterator<Item = (impl Into<String>, Status)>) -> Say {
    Say {
        items: items.into_iter().map(|(name, status)| (name.into(), status)).collect(),
        ordinal: Some(1),
        executor: Some("runner-1"),
        incarnation: Some(1),
        policy: OnDifference::Auto,
        outside_ci: false,
        job: "test",
        shard: None,
        commit: None,
        seconds: 1,
        key: "K",
        files: "junit.xml",
    }
}

fn many(range: std::ops::Range<usize>, status: Status) -> Vec<(String, Status)> {
    range.map(|n| (format!("item {n}"), status)).collect()
}

impl Say {
    fn attempt(mut self, ordinal: u64) -> Self {
        self.ordinal = Some(ordinal);
        self.executor = Some(["runner-0", "runner-1", "runner-2", "runner-3", "runner-4"][ordinal as usize]);
        self.incarnation = Some(u128::from(ordinal));
        self.seconds = ordinal;
        self
    }
    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn push(&self) -> Push {
        let outcomes = self
            .items
            .iter()
            .map(|(name, status)| Outcome {
                item: ItemName::new(["suite"], None, name),
                status: *status,
                duration_us: Some(DurationUs(self.seconds * 1_000_000)),
                message: None,
                attempts: Vec::new(),
                external_ids: Vec::new(),
            })
            .collect();
        let outcomes = Outcomes::from_unordered(outcomes).unwrap();
        let content = outcomes.digests().id();
        Push {
            key: PushKey::parse(self.key).unwrap(),
            place: Place {
                project: ProjectId::parse("shop").unwrap(),
                cycle: CycleName::parse("main").unwrap(),
                round: RoundId::parse("run:42").unwrap(),
                run: RunId::parse("42").unwrap(),
                label: None,
                job: Some(JobName::parse(self.job).unwrap()),
                shard: self.shard.map(|s| ShardRef::parse(s).unwrap()),
                variant: Variant::default(),
            },
            origin: Origin { commit: self.commit.map(|c| Commit::parse(c).unwrap()), ..Origin::default() },
            sender: Sender {
                ordinal: self.ordinal.map(Ordinal),
                ordinal_scope: OrdinalScope::Round,
                executor: self.executor.map(|e| Executor::parse(e).unwrap()),
                incarnation: self.incarnation.map(Incarnation),
            },
            on_difference: self.policy,
            outside_ci: self.outside_ci,
            expect: None,
            files: vec![self.files.to_owned()],
            report: ReportSummary::default(),
            incomplete: false,
            outcomes,
            content,
        }
    }
}

/// As little of an engine as carries decisions out.
#[derive(Default)]
struct Engine {
    pushes: BTreeMap<PushKey, (Known, Vec<Push>)>,
    tombstones: Vec<PushKey>,
}

struct LookUp<'a> {
    engine: &'a Engine,
    push: &'a Push,
}

impl Recorded for LookUp<'_> {
    type Error = Infallible;
    fn compare(&mut self) -> Result<Option<Comparison>, Infallible> {
        let lights: Vec<Light> = self.push.outcomes.as_slice().iter().map(Light::of).collect();
        Ok(Some(Comparison::of(&self.engine.view(&self.push.key), self.push.outcomes.hashes(), &lights)))
    }
    fn known_in_job(&mut self) -> Result<u64, Infallible> {
        let pushes = self.engine.pushes.iter();
        let of_job = pushes.filter(|(_, (known, _))| known.place.job == self.push.place.job);
        let views: Vec<View> = of_job.map(|(key, _)| self.engine.view(key)).collect();
        let known = |hash: &&ItemHash| views.iter().any(|view| view.get(**hash).is_some());
        Ok(self.push.outcomes.hashes().iter().filter(known).count() as u64)
    }
    fn shard_total(&mut self) -> Result<Option<u32>, Infallible> {
        Ok(self.engine.pushes.values().find_map(|(known, _)| known.place.shard.and_then(ShardRef::total)))
    }
}

impl Engine {
    fn view(&self, key: &PushKey) -> View {
        let Some((known, contents)) = self.pushes.get(key) else { return View::default() };
        let mut view = View::default();
        for (revision, content) in known.revisions.iter().zip(contents) {
            let lights: Vec<Light> = content.outcomes.as_slice().iter().map(Light::of).collect();
            view = view.laid_over(revision.kind, revision.number, content.outcomes.hashes(), &lights);
        }
        view
    }

    fn deliver(&mut self, what: &Say) -> Decision {
        let push = what.push();
        let known = self.pushes.get(&push.key).map(|(known, _)| known.clone());
        let tombstoned = self.tombstones.contains(&push.key);
        let Ok(decision) = decide(&push.offer(), known.as_ref(), tombstoned, &mut LookUp { engine: self, push: &push });
        match &decision {
            Decision::Record => self.store(&push, RevisionKind::First),
            Decision::Overlay { kind, .. } => self.store(&push, *kind),
            Decision::Replay { revision, .. } => {
                let (known, _) = self.pushes.get_mut(&push.key).unwrap();
                let of = &mut known.revisions[*revision as usize - 1];
                if of.is_confirmed_later(&push.sender) {
                    of.sender.ordinal = push.sender.ordinal;
                }
                self.accept(&push);
            }
            Decision::Refuse { contest, .. } => {
                if let Some((known, _)) = self.pushes.get_mut(&push.key) {
                    known.contested |= contest;
                }
            }
            Decision::Undecided => unreachable!("all outcomes are at hand"),
        }
        decision
    }

    fn accept(&mut self, push: &Push) {
        let known = &mut self.pushes.get_mut(&push.key).unwrap().0;
        if let Some(executor) = &push.sender.executor {
            let pair = (push.sender.ordinal, executor.clone());
            if !known.executors.contains(&pair) {
                known.executors.push(pair);
            }
        }
    }

    fn store(&mut self, push: &Push, kind: RevisionKind) {
        let fresh = Known {
            place: push.place.clone(),
            commit: push.origin.commit.clone(),
            contested: false,
            executors: Vec::new(),
            revisions: Vec::new(),
            same_body: None,
        };
        let (known, contents) = self.pushes.entry(push.key.clone()).or_insert((fresh, Vec::new()));
        known.revisions.push(KnownRevision {
            number: known.revisions.len() as u32 + 1,
            kind,
            sender: push.sender.clone(),
            content: push.content.content,
            outcomes: push.content.outcomes,
            files: push.files.clone(),
        });
        contents.push(push.clone());
        self.accept(push);
    }

    fn counts(&self) -> Counts {
        self.view(&PushKey::parse("K").unwrap()).counts()
    }
}

fn replay_of(revision: u32, class: DifferenceClass) -> Decision {
    Decision::Replay { revision, class, doubts: Vec::new() }
}

#[track_caller]
fn overlay(decision: &Decision) -> (RevisionKind, DifferenceClass) {
    match decision {
        Decision::Overlay { kind, difference, .. } => (*kind, difference.class),
        other => panic!("no overlay: {other:?}"),
    }
}

#[track_caller]
fn refusal(decision: Decision) -> Refusal {
    match decision {
        Decision::Refuse { refusal, .. } => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

use Status::{Failed, Passed};

#[test]
fn no_record_of_the_key_is_recorded() {
    let mut engine = Engine::default();
    assert_eq!(engine.deliver(&say(many(0..3, Passed))), Decision::Record);
}

#[test]
fn the_same_content_is_a_replay_of_its_revision() {
    let mut engine = Engine::default();
    let first = say(many(0..3, Passed));
    let _ = engine.deliver(&first);
    assert_eq!(engine.deliver(&first), replay_of(1, DifferenceClass::None));
}

#[test]
fn other_times_are_cosmetic() {
    let mut engine = Engine::default();
    let _ = engine.deliver(&say(many(0..3, Passed)));
    let again = say(many(0..3, Passed)).with(|s| s.seconds = 9);
    assert_eq!(engine.deliver(&again), replay_of(1, DifferenceClass::Cosmetic));
}

#[test]
fn another_place_under_the_key_is_reused_with_each_field() {
    let mut engine = Engine::default();
    let _ = engine.deliver(&say(many(0..3, Passed)).with(|s| s.commit = Some("abc")));
    let other = say(many(0..3, Passed)).with(|s| {
        s.job = "lint";
        s.shard = Some("1/2");
        s.commit = Some("def");
    });
    let Refusal::KeyReused(fields) = refusal(engine.deliver(&other)) else { panic!() };
    let names: Vec<&str> = fields.iter().map(|f| f.field.as_str()).collect();
    assert_eq!(names, ["job", "shard", "commit"]);
    assert_eq!((fields[2].recorded.as_str(), fields[2].offered.as_str()), ("abc", "def"));
}

#[test]
fn a_commit_that_only_one_side_gives_is_no_difference() {
    let mut engine = Engine::default();
    let _ = engine.deliver(&say(many(0..3, Passed)).with(|s| s.commit = Some("abc")));
    assert_eq!(engine.deliver(&say(many(0..3, Passed))), replay_of(1, DifferenceClass::None));
}

#[test]
fn s5_a_whole_re_run_revises_and_a_pass_after_a_failure_is_flaky() {
    let mut engine = Engine::default();
    let mut items = many(0..47, Passed);
    items.extend(many(47..50, Failed));
    let _ = engine.deliver(&say(items));
    let second = say(many(0..50, Passed)).attempt(2);
    assert_eq!(overlay(&engine.deliver(&second)), (RevisionKind::Revised, DifferenceClass::Semantic));
    assert_eq!(engine.counts(), Counts { total: 50, passed: 50, flaky: 3, ..Counts::default() });
    assert_eq!(engine.deliver(&second), replay_of(2, DifferenceClass::None));
}

#[test]
fn s6_a_re_run_of_three_out_of_fifty_leaves_the_others() {
    let mut engine = Engine::default();
    let mut items = many(0..47, Passed);
    items.extend(many(47..50, Failed));
    let _ = engine.deliver(&say(items));
    let second = say(many(47..50, Passed)).attempt(2);
    assert_eq!(overlay(&engine.deliver(&second)), (RevisionKind::Revised, DifferenceClass::Structural));
    assert_eq!(engine.counts(), Counts { total: 50, passed: 50, flaky: 3, ..Counts::default() });
}

#[test]
fn s7_a_lower_attempt_that_comes_late_changes_nothing_that_counts() {
    let mut engine = Engine::default();
    let _ = engine.deliver(&say(many(0..50, Passed)).attempt(2));
    let late = say(many(0..50, Failed)).attempt(1);
    assert_eq!(overlay(&engine.deliver(&late)), (RevisionKind::Kept, DifferenceClass::Semantic));
    assert_eq!(engine.counts(), Counts { total: 50, passed: 50, ..Counts::default() });
    let forced = say(many(0..50, Failed)).attempt(1).with(|s| {
        s.policy = OnDifference::Revise;
        s.items[0].1 = Status::Errored;
    });
    assert_eq!(overlay(&engine.deliver(&forced)).0, RevisionKind::Kept, "a lower one never changes what counts");
}

#[test]
fn an_attempt_that_a_later_one_overtook_changes_nothing_though_the_later_one_was_a_replay() {
    let mut engine = Engine::default();
    let _ = engine.deliver(&say(many(0..3, Failed)));
    let third = say(many(0..3, Failed)).attempt(3);
    assert_eq!(engine.deliver(&third), replay_of(1, DifferenceClass::Cosmetic));
    let second = say(many(0..3, Passed)).attempt(2);
    assert_eq!(overlay(&engine.deliver(&second)), (RevisionKind::Kept, DifferenceClass::Semantic));
    assert_eq!(engine.counts(), Counts { total: 3, failed: 3, ..Counts::default() });
    let forced = second.with(|s| s.policy = OnDifference::Revise);
    assert_eq!(engine.deliver(&forced), replay_of(2, DifferenceClass::None));
    assert_eq!(overlay(&engine.deliver(&say(many(0..3, Passed)).attempt(4))).0, RevisionKind::Revised);
}

#[test]
fn every_attempt_gets_the_receipt_that_it_got_first() {
    let mut engine = Engine::default();
    let same = |attempt| say(many(0..3, Failed)).attempt(attempt).with(|s| s.seconds = 1);
    let _ = engine.deliver(&same(1));
    let _ = engine.deliver(&same(2));
    let _ = engine.deliver(&say(many(0..3, Passed)).attempt(3));
    assert_eq!(overlay(&engine.deliver(&same(4))).0, RevisionKind::Revised);
    for (attempt, revision) in [(1, 1), (2, 1), (4, 3)] {
        assert_eq!(engine.deliver(&same(attempt)), replay_of(revision, DifferenceClass::None), "attempt {attempt}");
    }
}

#[test]
fn s8_a_cut_first_attempt_is_completed() {
    let mut engine = Engine::default();
    let _ = engine.deliver(&say(many(0..200, Passed)));
    assert_eq!(overlay(&engine.deliver(&say(many(0..500, Passed)).attempt(2))).0, RevisionKind::Revised);
    assert_eq!(engine.counts(), Counts { total: 500, passed: 500, ..Counts::default() });
}

#[test]
fn s9_fail_pass_fail_is_failed() {
    let mut engine = Engine::default();
    let _ = engine.deliver(&say(many(0..3, Failed)));
    let _ = engine.deliver(&say(many(0..3, Passed)).attempt(2));
    let third = say(many(0..3, Failed)).attempt(3);
    assert_eq!(overlay(&engine.deliver(&third)), (RevisionKind::Revised, DifferenceClass::Semantic));
    assert_eq!(engine.counts(), Counts { total: 3, failed: 3, ..Counts::default() });
    assert_eq!(engine.deliver(&third), replay_of(3, DifferenceClass::None), "a repeat of the third, not of the first");
    assert_eq!(engine.deliver(&say(many(0..3, Failed))), replay_of(1, DifferenceClass::None), "a repeat of the first");
    assert_eq!(engine.counts().failed, 3);
}

#[test]
fn s14_under_revise_with_unknown_attempts_the_last_counts() {
    let mut engine = Engine::default();
    let jenkins = |status, process: u128| {
        say(many(0..3, status)).with(|s| {
            s.ordinal = None;
            s.executor = Some("node-1");
            s.incarnation = Some(process);
            s.seconds = process as u64;
            s.policy = OnDifference::Revise;
        })
    };
    let _ = engine.deliver(&jenkins(Failed, 1));
    assert_eq!(overlay(&engine.deliver(&jenkins(Passed, 2))).0, RevisionKind::Revised);
    assert_eq!(overlay(&engine.deliver(&jenkins(Failed, 3))).0, RevisionKind::Revised);
    assert_eq!(engine.counts().failed, 3);
    assert_eq!(engine.deliver(&jenkins(Passed, 2)), replay_of(2, DifferenceClass::None), "a delayed message");
    assert_eq!(engine.counts().failed, 3);
}

#[test]
fn s14_by_default_the_recorded_one_is_kept() {
    let mut engine = Engine::default();
    let first = say(many(0..3, Failed)).with(|s| s.ordinal = None);
    let _ = engine.deliver(&first);
    let second = say(many(0..3, Passed)).with(|s| {
        s.ordinal = None;
        s.incarnation = Some(2);
    });
    assert_eq!(overlay(&engine.deliver(&second)), (RevisionKind::Kept, DifferenceClass::Semantic));
    assert_eq!(engine.counts().failed, 3);
    assert_eq!(engine.deliver(&second), replay_of(2, DifferenceClass::None));
    let insisting = second.with(|s| {
        s.incarnation = Some(3);
        s.policy = OnDifference::Revise;
    });
    assert_eq!(overlay(&engine.deliver(&insisting)).0, RevisionKind::Revised, "a new wish may revise by what was kept");
    assert_eq!(engine.counts(), Counts { total: 3, passed: 3, flaky: 3, ..Counts::default() });
}

#[test]
fn s23_outside_ci_a_difference_fails_and_stores_nothing() {
    let mut engine = Engine::default();
    let local = |status| {
        say(many(0..3, status)).with(|s| {
            s.ordinal = None;
            s.executor = None;
            s.outside_ci = true;
        })
    };
    let _ = engine.deliver(&local(Failed));
    let Refusal::Differs(summary) = refusal(engine.deliver(&local(Passed))) else { panic!() };
    assert_eq!((summary.class, summary.changed), (DifferenceClass::Semantic, 3));
    assert_eq!(engine.counts().failed, 3);
}

#[test]
fn s32_the_later_rising_number_wins_whatever_comes_last() {
    let mut engine = Engine::default();
    let gitlab = |id: u64, status| {
        say(many(0..3, status)).with(|s| {
            s.ordinal = Some(id);
            s.executor = Some(if id == 100 { "100" } else { "101" });
            s.incarnation = Some(u128::from(id));
        })
    };
    let _ = engine.deliver(&gitlab(101, Passed));
    assert_eq!(overlay(&engine.deliver(&gitlab(100, Failed))).0, RevisionKind::Kept);
    assert_eq!(engine.counts().passed, 3);
}

#[test]
fn a_kept_content_that_a_later_attempt_repeats_counts_from_then_on() {
    let mut engine = Engine::default();
    let _ = engine.deliver(&say(many(0..3, Passed)).attempt(2));
    let _ = engine.deliver(&say(many(0..3, Failed)).attempt(1));
    let third = say(many(0..3, Failed)).attempt(3);
    assert_eq!(overlay(&engine.deliver(&third)).0, RevisionKind::Revised, "not swallowed as a repeat of what was kept");
    assert_eq!(engine.counts().failed, 3);
}

#[test]
fn under_keep_a_higher_attempt_is_kept_once() {
    let mut engine = Engine::default();
    let _ = engine.deliver(&say(many(0..3, Passed)));
    let second = say(many(0..3, Failed)).attempt(2).with(|s| s.policy = OnDifference::Keep);
    assert_eq!(overlay(&engine.deliver(&second)).0, RevisionKind::Kept);
    assert_eq!(engine.deliver(&second), replay_of(2, DifferenceClass::None));
}

#[test]
fn s11_an_empty_shard_leaves_what_is_recorded() {
    let mut engine = Engine::default();
    let _ = engine.deliver(&say(many(0..3, Passed)));
    let empty = say(many(0..0, Passed)).attempt(2);
    assert_eq!(overlay(&engine.deliver(&empty)), (RevisionKind::Revised, DifferenceClass::Structural));
    assert_eq!(engine.counts().total, 3);
}

#[test]
fn an_empty_first_push_takes_later_items() {
    let mut engine = Engine::default();
    let _ = engine.deliver(&say(many(0..0, Passed)));
    let _ = overlay(&engine.deliver(&say(many(0..3, Passed)).with(|s| s.ordinal = None)));
    assert_eq!(engine.counts().total, 3, "even when kept, items without an outcome count");
}

#[test]
fn a_changed_shard_plan_is_refused_under_a_new_key_too() {
    let mut engine = Engine::default();
    let _ = engine.deliver(&say(many(0..3, Passed)).with(|s| s.shard = Some("1/4")));
    let replanned = say(many(0..3, Passed)).with(|s| {
        s.shard = Some("1/5");
        s.key = "K5";
    });
    assert_eq!(refusal(engine.deliver(&replanned)), Refusal::ShardPlanChanged { known: 4, offered: 5 });
    let without_total = replanned.with(|s| s.shard = Some("2"));
    assert_eq!(engine.deliver(&without_total), Decision::Record);
}

#[test]
fn a_tombstone_refuses_for_ever() {
    let mut engine = Engine { tombstones: vec![PushKey::parse("K").unwrap()], ..Engine::default() };
    assert_eq!(refusal(engine.deliver(&say(many(0..3, Passed)))), Refusal::Tombstoned);
}

#[test]
fn doubts_are_said_with_the_replay() {
    let mut engine = Engine::default();
    let first = say(many(0..3, Passed)).with(|s| s.ordinal = None);
    let _ = engine.deliver(&first);
    let other = first.with(|s| {
        s.executor = Some("runner-2");
        s.files = "other.xml";
    });
    let Decision::Replay { doubts, .. } = engine.deliver(&other) else { panic!() };
    assert_eq!(doubts, [Doubt::OtherExecutorUnknownAttempt, Doubt::OtherFiles]);
}

#[test]
fn equal_body_bytes_are_the_same_whatever_the_reader_makes_of_them() {
    let mut engine = Engine::default();
    let _ = engine.deliver(&say(many(0..3, Passed)));
    engine.pushes.values_mut().next().unwrap().0.same_body = Some(1);
    let read_otherwise = say(many(0..4, Failed));
    assert_eq!(engine.deliver(&read_otherwise), replay_of(1, DifferenceClass::None));
}
