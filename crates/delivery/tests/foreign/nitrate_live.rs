//! Nitrate: the adapter against the real server.

use std::sync::LazyLock;

use delivery::Secret;
use delivery::foreign::{Closing, CycleId, Kind, TargetSettings, Trouble};
use domain::Status;
use proof::rigs::{self, Rig};

use crate::given::{entry, settings_at};
use crate::live;

struct World {
    settings: TargetSettings,
    rig: Rig,
}

/// One server for all tests of this file; each has rounds and cases of its own.
static WORLD: LazyLock<Option<World>> = LazyLock::new(|| {
    let rig = rigs::or_skip(Rig::nitrate()).unwrap()?;
    make_plan(&rig);
    let own = serde_json::json!({"version": rig.version(), "build": "made by us", "plan": "Automated"});
    let mut settings = settings_at(Kind::Nitrate, rig.url(), own);
    rig.product().clone_into(&mut settings.project);
    settings.user = Some(rig.user().to_owned());
    settings.token = Some(Secret::new(rig.password()));
    Some(World { settings, rig })
});

/// What people do in the product before results come: a plan. The first of product and plan type; the version by its
/// number, as the seed makes it after the one that comes with a product.
fn make_plan(rig: &Rig) {
    let member = |name: &str, value: &str| format!("<member><name>{name}</name><value>{value}</value></member>");
    let call = |method: &str, members: String| {
        let params = format!("<params><param><value><struct>{members}</struct></value></param></params>");
        format!("<methodCall><methodName>{method}</methodName>{params}</methodCall>")
    };
    let who = member("username", rig.user()) + &member("password", rig.password());
    let (head, _) = live::post(rig.rpc(), "text/xml", None, &call("Auth.login", who));
    let session = head.split("sessionid=").nth(1).unwrap().split(';').next().unwrap().to_owned();
    let number = |name: &str, value: i64| member(name, &format!("<int>{value}</int>"));
    let plan = member("name", "Automated")
        + &member("text", "plan")
        + &number("product", 1)
        + &number("product_version", 2)
        + &number("default_product_version", 2)
        + &number("type", 1);
    let (head, answer) = live::post(rig.rpc(), "text/xml", Some(&session), &call("TestPlan.create", plan));
    assert!(head.contains(" 200 ") && answer.contains("plan_id"), "{head} {answer}");
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
async fn a_repeat_replaces_verdict_and_notes() {
    let Some(world) = &*WORLD else { return };
    let (run, entries) = live::a_repeat_replaces_and_a_changed_verdict_too(&world.settings).await;
    let query = "SELECT case_id, count(*) FROM test_case_runs WHERE run_id = ?1 GROUP BY case_id";
    let rows = live::counts(&world.rig.database(), query, &run);
    assert_eq!(rows.len(), entries.len());
    assert!(rows.values().all(|count| *count == 1), "{rows:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_entry_spoils_no_batch() {
    let Some(world) = &*WORLD else { return };
    live::a_bad_entry_spoils_no_batch(&world.settings).await;
}

/// The losers' refusals come as status 500; each reads that the row is there, and goes on.
#[tokio::test(flavor = "multi_thread")]
async fn writers_that_add_at_once_share_one_row() {
    let Some(world) = &*WORLD else { return };
    let (run, entries) = live::two_writers_at_once_leave_one_verdict(&world.settings).await;
    let rows = live::target(&world.settings).rows(&run, &[]).await.unwrap();
    assert_eq!(rows.len(), entries.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_is_deleted_and_a_run_is_not() {
    let Some(world) = &*WORLD else { return };
    let (run, cases) = live::run_of(&world.settings, "deletes", 2).await;
    let target = live::target(&world.settings);
    let entries = [entry(cases[0].as_str(), Status::Passed), entry(cases[1].as_str(), Status::Failed)];
    target.write(&run, &entries).await.unwrap();
    let rows = target.rows(&run, &[]).await.unwrap();
    for _ in 0..2 {
        target.delete(&run, &rows[0].id).await.unwrap();
    }
    assert_eq!(target.rows(&run, &[]).await.unwrap(), rows[1..]);
    assert!(matches!(target.delete_cycle(&run).await, Err(Trouble::Refused(_))));
    target.close_cycle(&run, Closing::Complete).await.unwrap();
}

/// Every fault is a 500 here, a wrong password too: nothing is sent then, and the words say what it may be.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_said() {
    let Some(world) = &*WORLD else { return };
    let mut stranger = world.settings.clone();
    stranger.token = Some(Secret::new("guessed"));
    let answer = live::target(&stranger).rows(&CycleId::new("1"), &[]).await;
    assert!(matches!(&answer, Err(trouble) if trouble.to_string().contains("wrong password?")), "{answer:?}");
}
