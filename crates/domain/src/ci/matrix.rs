//! The leg of a matrix, where the pipeline hands it over: `TALLYONCE_MATRIX` (`toJSON(matrix)`), `TALLYONCE_MATRIX_INDEX`
//! (`strategy.job-index`, from 0) and `TALLYONCE_MATRIX_TOTAL` (`strategy.job-total`).
//! Every leg sees itself alone, and yet no two legs may come to one key. Must not know any platform.
//!
//! Legs whose values read the same, such as `18` and `"18"`, are one leg here: their keys are equal, and the second
//! is refused as a collision.

use serde_json::{Map, Value};

use super::platform::{Found, Reading};
use super::{Env, IdentityError, Overrides};
use crate::id::{IdError, ShardRef, Variant};

const MATRIX: &str = "TALLYONCE_MATRIX";
const INDEX: &str = "TALLYONCE_MATRIX_INDEX";
const TOTAL: &str = "TALLYONCE_MATRIX_TOTAL";

/// Keys whose value is a shard's number, if it can be one. Of several the first in this order is taken.
const SHARD_NAMES: [&str; 5] = ["shard", "index", "chunk", "group", "split"];
/// Keys beside it whose value is the number of shards.
const TOTAL_NAMES: [&str; 4] = ["total", "shards", "of", "count"];

const WHY: &str = "the values of this leg of the matrix, the same when it is tried again";

/// The place of the leg among all of its job.
#[derive(Debug, Clone, Copy)]
struct Place {
    index: u32,
    total: u32,
}

/// Reads the leg into shard, variant and the number of pushes to expect. Flags win, each over its own part.
///
/// # Errors
/// Where the matrix is no JSON object, or a value cannot stand in a key: the legs would share one.
pub(super) fn read(
    title: &'static str,
    env: &Env,
    overrides: &Overrides,
    reading: &mut Reading,
) -> Result<(), IdentityError> {
    let index = number(title, env, INDEX)?;
    let total = number(title, env, TOTAL)?;
    let Some(leg) = leg(env)? else {
        let told_apart = overrides.shard.is_some() || overrides.variant.is_some();
        if total.is_some_and(|total| total > 1) && !told_apart {
            reading.warnings.push(format!(
                "{TOTAL} says that this job has several legs, but {MATRIX} is not set: all of them would share one key. \
                 Set it to ${{{{ toJSON(matrix) }}}}, or pass --shard or --variant"
            ));
        }
        return Ok(());
    };
    reading.expect = total.filter(|total| *total > 0);
    let place = index.zip(total).map(|(index, total)| Place { index, total });
    let shard = shard(&leg, place);
    let taken = taken(shard.as_ref(), overrides.shard);
    if let (Some(shard), Some(flag), []) = (&shard, overrides.shard, taken.as_slice()) {
        reading.warnings.push(format!(
            "--shard {flag} is another shard than {}={} of {MATRIX}, which stays in the variant; pass --variant if it \
             should not",
            shard.name,
            text(&leg[shard.name])
        ));
    }
    let pairs = leg.iter().filter(|(name, _)| !taken.contains(&name.as_str()));
    match Variant::from_pairs(pairs.map(|(name, value)| (name.as_str(), text(value)))) {
        Ok(variant) if variant.is_empty() => {}
        Ok(variant) => reading.variant = Some(Found::new(variant, MATRIX, WHY)),
        Err(_) if overrides.variant.is_some() => {}
        Err(error) => return Err(bad(format!("{error}; pass --variant instead"))),
    }
    reading.shard = shard.map(|shard| Found::new(shard.value, MATRIX, WHY));
    Ok(())
}

/// The matrix; none if there is none.
fn leg(env: &Env) -> Result<Option<Map<String, Value>>, IdentityError> {
    let Some(json) = env.get(MATRIX) else { return Ok(None) };
    match serde_json::from_str(json) {
        Ok(Value::Object(leg)) => Ok(Some(leg).filter(|leg| !leg.is_empty())),
        Ok(Value::Null) => Ok(None),
        Ok(_) => Err(bad("it is JSON, but no object".to_owned())),
        Err(error) => Err(bad(format!("it is no JSON ({error})"))),
    }
}

fn bad(reason: String) -> IdentityError {
    IdentityError::BadMatrix { variable: MATRIX, reason }
}

fn number(title: &'static str, env: &Env, variable: &'static str) -> Result<Option<u32>, IdentityError> {
    let Some(text) = env.get(variable) else { return Ok(None) };
    match text.parse::<u32>() {
        Ok(number) if number < u32::MAX => Ok(Some(number)),
        _ => {
            let source = IdError::BadShard { text: text.to_owned() };
            Err(IdentityError::BadVariable { platform: title, variable, source })
        }
    }
}

/// A shard, and the keys that it was made of.
#[derive(Debug)]
struct Shard {
    value: ShardRef,
    name: &'static str,
    total_name: Option<&'static str>,
    /// The value says index and total: `3/8`.
    written_out: bool,
}

fn shard(leg: &Map<String, Value>, place: Option<Place>) -> Option<Shard> {
    let name = SHARD_NAMES.into_iter().find(|name| leg.contains_key(*name))?;
    let alone = leg.len() == 1;
    if let Some(shard) = written_out(&leg[name]) {
        // Beside `2`, whose total is that of the legs, `1/2` would be the same shard in another place.
        let in_place = |place: Place| shard.total() != Some(place.total) || shard.index() == place.index + 1;
        return (!alone || place.is_none_or(in_place)).then_some(Shard {
            value: shard,
            name,
            total_name: None,
            written_out: true,
        });
    }
    let value = integer(&leg[name])?;
    let numbered = |value, total_name| Shard { value, name, total_name, written_out: false };
    if let (true, Some(Place { index, total })) = (alone, place) {
        // The list counts from 1 or from 0. Any other number could be the place of another leg.
        let in_place = value == index + 1 || value == index;
        let shard = in_place.then(|| ShardRef::new(index + 1, Some(total)).ok()).flatten();
        return shard.map(|shard| numbered(shard, None));
    }
    let total = TOTAL_NAMES.into_iter().find_map(|total_name| {
        let total = leg.get(total_name).and_then(integer)?;
        ShardRef::new(value, Some(total)).ok().map(|shard| numbered(shard, Some(total_name)))
    });
    total.or_else(|| ShardRef::new(value, None).ok().map(|shard| numbered(shard, None)))
}

/// The keys that the shard of the key holds already, so that the variant need not.
///
/// Under `--shard` only what the flag says too, a number its index, `3/8` the whole of it: any other value still tells
/// legs apart. (A list of both kinds, with a flag that fits two of its values, is beyond that.)
fn taken(shard: Option<&Shard>, flag: Option<ShardRef>) -> Vec<&'static str> {
    let Some(Shard { value, name, total_name, written_out }) = shard else { return Vec::new() };
    let said = flag.unwrap_or(*value);
    let mut taken = Vec::new();
    if said == *value || (said.index() == value.index() && !written_out) {
        taken.push(*name);
    }
    if said == *value {
        taken.extend(*total_name);
    }
    taken
}

/// A shard in its one spelling, such as `3/8`: `03/8` is another value, and so another leg.
fn written_out(value: &Value) -> Option<ShardRef> {
    let text = value.as_str()?;
    let shard = ShardRef::parse(text).ok()?;
    (shard.total().is_some() && shard.to_string() == text).then_some(shard)
}

/// A whole number, also one in quotes, in its one spelling.
fn integer(value: &Value) -> Option<u32> {
    match value {
        Value::Number(number) => number.as_u64().and_then(|number| u32::try_from(number).ok()),
        Value::String(text) => text.parse::<u32>().ok().filter(|number| number.to_string() == *text),
        _ => None,
    }
}

/// The value as the variant says it: itself where that is plain, else JSON.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        _ => value.to_string(),
    }
}

/// False for a text that a variant would trim, refuse, or not tell from a list, an object or a quoted text.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.trim() == text && !text.starts_with(['"', '[', '{']) && !text.chars().any(char::is_control)
}
