//! Which cycles an audit reads: a second one, others of the name, and those that are not there any more.

use delivery::foreign::audit::{Audit, AuditError, AuditOptions, Finding, Shared};
use delivery::foreign::patience::GaveUp;
use delivery::foreign::{Adapter as _, CycleId, CycleWanted, KeyOnWrite, Trouble, VerdictRule};
use domain::Status;
use domain::intent::{Intent, IntentState};

use crate::audit::{audit, entry, intent, product, words};
use crate::given::{comment, facts, marker, patiently, wanted};
use crate::product::Product;

const T0: u64 = 1_790_000_000_000;

#[tokio::test]
async fn a_second_cycle_of_the_round_is_found_and_so_is_what_stands_in_both() {
    let (product, first) = product();
    let second = product.cycle();
    let text = comment("m", marker(1, Status::Passed, None));
    product.put(&first, "1", Status::Passed, &text, T0);
    product.put(&second, "1", Status::Passed, &text, T0 + 1);
    let audit = audit(&product, None).await;
    assert_eq!(words(&audit), ["duplicate-cycles", "doubled"]);
    let Finding::DuplicateCycles { shared, cycles } = &audit.findings[0] else { panic!() };
    let seen: Vec<(&CycleId, usize)> = cycles.iter().map(|cycle| (&cycle.cycle, cycle.rows)).collect();
    assert_eq!((*shared, seen), (Shared::Tag, vec![(&first, 1), (&second, 1)]));
}

#[tokio::test]
async fn a_named_cycle_beside_one_of_the_same_name_is_found() {
    let (product, _) = product();
    let other = CycleWanted { id: domain::marker::WriteId(9), ..wanted() };
    let by_hand = product.create_cycle(&other).await.unwrap();
    let wanted = CycleWanted { given: Some(by_hand), ..wanted() };
    let options = AuditOptions::new(VerdictRule::Appends);
    let audit = patiently(&product, async |p| Audit::of(&product, &wanted, None, options, p).await).await.unwrap();
    assert!(matches!(&audit.findings[..], [Finding::DuplicateCycles { shared: Shared::Name, .. }]), "{audit:?}");
}

/// The audit of a cycle of the product's own that nobody here pushed to.
async fn audit_of(product: &Product, cycle: &CycleId) -> Audit {
    let options = AuditOptions::new(VerdictRule::Appends);
    patiently(product, async |p| Audit::of_cycle(product, cycle, options, p).await).await.unwrap()
}

#[tokio::test]
async fn cycles_of_one_name_that_nobody_tagged_are_likely_to_be_one() {
    let product = Product::new(facts(VerdictRule::Appends, KeyOnWrite::None));
    let [first, again, later, other] =
        ["nightly", "nightly", "nightly", "weekly"].map(|name| product.foreign_cycle(name));
    for (cycle, at) in [(&first, T0), (&again, T0 + 5000), (&later, T0 + 86_400_000), (&other, T0)] {
        product.put(cycle, "1", Status::Passed, "", at);
        product.put(cycle, "2", Status::Failed, if *cycle == again { "boom" } else { "" }, at + 10);
    }
    // One of ours of the same name says by its tag whose it is.
    let ours = product.create_cycle(&CycleWanted { name: "nightly".to_owned(), ..wanted() }).await.unwrap();
    product.put(&ours, "1", Status::Passed, "", T0);
    let found = audit_of(&product, &first).await;
    let [Finding::LikelyDuplicateCycles { cycles, apart_ms, cases_shared, cases_equal }] = &found.findings[..] else {
        panic!("{found:?}")
    };
    assert_eq!(cycles.iter().map(|cycle| &cycle.cycle).collect::<Vec<_>>(), [&first, &again]);
    assert_eq!((*apart_ms, *cases_shared, *cases_equal), (5000, 2, 1));
    assert_eq!(cycles[1].at_ms, Some(T0 + 5000));
    assert!(!found.is_clean() && found.counts.rows == 2, "rows of the other one count nowhere: {found:?}");
    assert!(found.lines()[0].evidence.contains("made within 5 s"), "{:?}", found.lines());
    assert!(audit_of(&product, &later).await.is_clean() && audit_of(&product, &other).await.is_clean());
}

#[tokio::test]
async fn of_many_cycles_of_one_name_the_nearest_are_read_and_the_others_said() {
    let product = Product::new(facts(VerdictRule::Appends, KeyOnWrite::None));
    let nights: Vec<CycleId> = (0..30).map(|_| product.foreign_cycle("nightly")).collect();
    // The last one was made twice.
    let again = product.foreign_cycle("nightly");
    for (night, cycle) in nights.iter().enumerate() {
        product.put(cycle, "1", Status::Passed, "", T0 + night as u64 * 86_400_000);
    }
    product.put(&again, "1", Status::Passed, "", T0 + 29 * 86_400_000 + 5000);
    let found = audit_of(&product, &nights[29]).await;
    assert_eq!(words(&found), ["likely-duplicate-cycles"]);
    assert!(found.unseen[0].contains("the nearest 20 were read, and 10 were not"), "{:?}", found.unseen);
}

#[tokio::test]
async fn containers_of_the_ledger_are_read_and_one_that_is_gone_is_missed() {
    let product = Product::new(facts(VerdictRule::Appends, KeyOnWrite::None));
    let container = |number| CycleWanted { id: domain::marker::WriteId(number), ..wanted() };
    let (one, two) = (product.create_cycle(&container(1)).await.unwrap(), product.create_cycle(&container(2)).await);
    let two = two.unwrap();
    let of = |id, case: &str, cycle: &CycleId| {
        let entries = [entry(case, marker(id, Status::Passed, None), Status::Passed)];
        Intent { cycle_there: Some(cycle.to_string()), ..intent(id, IntentState::Acked, &entries) }
    };
    let ledger = [of(1, "a", &one), of(2, "b", &two)];
    product.put(&one, "a", Status::Passed, &comment("", marker(1, Status::Passed, None)), T0);
    product.put(&two, "b", Status::Passed, &comment("", marker(2, Status::Passed, None)), T0);
    let found = audit(&product, Some(&ledger)).await;
    assert!(found.is_clean() && found.counts.cycles == 2, "{found:?}");
    product.delete_cycle(&two).await.unwrap();
    assert_eq!(words(&audit(&product, Some(&ledger)).await), ["missing"]);
}

#[tokio::test]
async fn no_cycle_is_no_clean_audit() {
    let product = Product::new(facts(VerdictRule::Appends, KeyOnWrite::None));
    let options = AuditOptions::new(VerdictRule::Appends);
    let audit = patiently(&product, async |p| Audit::of(&product, &wanted(), None, options, p).await).await;
    assert!(matches!(audit, Err(AuditError::NoCycle { .. })), "{audit:?}");
}

#[tokio::test]
async fn only_what_the_product_says_is_not_there_is_gone() {
    let (product, cycle) = product();
    let entries = [entry("a", marker(1, Status::Passed, None), Status::Passed)];
    let ledger = [Intent { cycle_there: Some(cycle.to_string()), ..intent(1, IntentState::Acked, &entries) }];
    let wanted = CycleWanted { given: Some(cycle.clone()), ..wanted() };
    let options = AuditOptions::new(VerdictRule::Appends);
    let (gone, refused) = (Trouble::Gone("no such run".to_owned()), Trouble::Refused("not yours".to_owned()));
    for (says, is_gone) in [(gone, true), (refused, false)] {
        *product.says_of_ids.lock().unwrap() = Some(says);
        let known = patiently(&product, async |p| Audit::of(&product, &wanted, Some(&ledger), options, p).await).await;
        let unknown = patiently(&product, async |p| Audit::of_cycle(&product, &cycle, options, p).await).await;
        match (is_gone, &known, &unknown) {
            (true, Ok(known), Err(AuditError::NotThere { .. })) => {
                assert_eq!((words(known), &known.gone[..]), (vec!["missing"], std::slice::from_ref(&cycle)));
            }
            (false, Err(AuditError::Unread(GaveUp::Refused(_))), Err(AuditError::Unread(GaveUp::Refused(_)))) => {}
            other => panic!("{other:?}"),
        }
    }
    // Some products list nothing instead.
    *product.says_of_ids.lock().unwrap() = None;
    let none = CycleId::new("R99");
    let unknown = patiently(&product, async |p| Audit::of_cycle(&product, &none, options, p).await).await;
    assert!(matches!(unknown, Err(AuditError::NotThere { .. })), "{unknown:?}");
    product.delete_cycle(&cycle).await.unwrap();
    let known = patiently(&product, async |p| Audit::of(&product, &wanted, Some(&ledger), options, p).await).await;
    assert_eq!(known.unwrap().gone, [cycle]);
}
