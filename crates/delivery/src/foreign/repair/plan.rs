//! From findings to what is to be done, row by row: a pure function. Must not call anybody.

use domain::marker::{ContentTag, Marker};

use super::{How, Mend, NotPossible, Plan, RepairOptions, Sure};
use crate::foreign::audit::{Audit, Finding, Seen, repeat_of};
use crate::foreign::entry::RowStatus;
use crate::foreign::facts::Repair;

/// What is to be done about an audit's findings with what the product allows.
///
/// Of equal rows the first by rank is kept. Rows that differ in verdict, text or cycle from it are never touched: a person
/// may have edited them.
pub fn plan(audit: &Audit, repair: Repair, options: RepairOptions) -> Plan {
    let mut plan = Plan::default();
    for finding in &audit.findings {
        match finding {
            Finding::Doubled { rows, .. } => group(rows, Sure::Certain, repair, &mut plan),
            Finding::LikelyDoubled { rows, .. } if options.likely => group(rows, Sure::Likely, repair, &mut plan),
            Finding::LikelyDoubled { case, .. } => plan.only_likely.push(case.clone()),
            Finding::DuplicateCycles { cycles, .. } => plan.by_hand(Sure::Certain, finding, cycles.clone()),
            Finding::LikelyDuplicateCycles { cycles, .. } => plan.by_hand(Sure::Likely, finding, cycles.clone()),
            Finding::CountDiffers { cycle, .. } => {
                let counted = audit.cycles.iter().filter(|seen| seen.cycle == *cycle).cloned().collect();
                plan.by_hand(Sure::Certain, finding, counted);
            }
            Finding::ReExecuted { .. }
            | Finding::Missing { .. }
            | Finding::Orphan { .. }
            | Finding::MarkerMangled { .. } => {}
        }
    }
    plan
}

fn group(rows: &[Seen], sure: Sure, repair: Repair, plan: &mut Plan) {
    let mut rows: Vec<&Seen> = rows.iter().collect();
    rows.sort_by(|a, b| a.rank().cmp(&b.rank()));
    // The first of each set of equal rows; the first of all is what the others repeat.
    let mut firsts: Vec<&Seen> = Vec::new();
    for row in rows {
        match firsts.iter().find(|first| first.says_the_same_as(row)) {
            None => {
                if let Some(first) = firsts.first() {
                    let why = difference(first, row);
                    plan.not_possible.push(NotPossible { sure, of: first.row.clone(), row: row.clone(), why });
                }
                firsts.push(row);
            }
            Some(kept) => match how(kept, row, repair) {
                Ok(how) => plan.mends.push(Mend { sure, kept: (*kept).clone(), row: row.clone(), how }),
                Err(why) => {
                    plan.not_possible.push(NotPossible { sure, of: kept.row.clone(), row: row.clone(), why });
                }
            },
        }
    }
}

fn difference(first: &Seen, row: &Seen) -> String {
    let what = if first.cycle != row.cycle {
        return format!(
            "it stands in cycle {}, and row {} in cycle {}: a person decides which cycle counts",
            row.cycle, first.row, first.cycle
        );
    } else if first.status == row.status {
        "text"
    } else {
        "verdict"
    };
    format!("its {what} differs from row {}: a person may have edited one of them, and decides", first.row)
}

fn how(kept: &Seen, row: &Seen, repair: Repair) -> Result<How, String> {
    if repair.delete {
        return Ok(How::Delete);
    }
    if !repair.amend {
        return Err("the product can neither delete nor change a recorded outcome, so it still counts there".to_owned());
    }
    mark(kept, row)
}

/// Keeps the verdict, and says in the text what the row repeats.
pub(super) fn mark(kept: &Seen, row: &Seen) -> Result<How, String> {
    let RowStatus::Is(status) = row.status else {
        return Err(
            "the product can't delete it, and changing it would change its verdict, which is none of ours".into()
        );
    };
    let content = row.said().map_or_else(|| ContentTag::of(&[status]), |(_, content)| content);
    Ok(How::MarkAsRepeat {
        status,
        message: format!("Repeat of {}: one outcome that was delivered twice. This one doesn't count.", kept.row),
        marker: Marker { write: repeat_of(&row.cycle, &kept.row, &row.row), content, ordinal: None },
    })
}
