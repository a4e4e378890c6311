//! Which cases of a plan an item has. Must not know points, runs or results.

use std::collections::BTreeMap;

use crate::foreign::entry::{Case, CaseChoice, CaseId, CaseWanted};
use crate::foreign::mapping::{IdShape, ids_in, named};

/// The cases of an item, of those that have a point in the plan: number and title.
pub(super) fn of_plan(wanted: &CaseWanted<'_>, cases: &BTreeMap<String, Option<String>>) -> CaseChoice {
    let title = wanted.item.to_string();
    let known = |id: &str| CaseChoice::Known(Case { id: CaseId::new(id), title: title.clone() });
    // A number alone may be the id of anything: it counts if it is one of the suite's.
    let bare = || wanted.given().filter(|id| cases.contains_key(*id)).map(CaseId::new);
    let mut by_id = named(wanted, "TC");
    if wanted.mapped.is_none() && bare().next().is_some() {
        let tagged = wanted.given().flat_map(|id| ids_in(id, IdShape::Prefixed("TC"))).map(CaseId::new);
        by_id = bare().chain(tagged).collect();
    }
    if !by_id.is_empty() {
        return CaseChoice::of(by_id.iter().map(|id| {
            let id = id.as_str().trim_start_matches("TC");
            let why = || format!("case {id} has no point in the suite (and configuration) of this target");
            if cases.contains_key(id) { known(id) } else { CaseChoice::Unmatched { why: why() } }
        }));
    }
    let name = wanted.item.name();
    let titled: Vec<&String> =
        cases.iter().filter(|(_, title)| title.as_deref() == Some(name)).map(|(id, _)| id).collect();
    match titled[..] {
        [one] => known(one),
        [] => CaseChoice::Unmatched {
            why: "neither the mapping file nor a property nor the name gives a case (TC12), and none has this title"
                .to_owned(),
        },
        _ => CaseChoice::Unmatched { why: format!("{} cases have this title", titled.len()) },
    }
}
