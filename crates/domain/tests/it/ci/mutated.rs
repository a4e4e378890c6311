//! Every job with every variable changed: what a retry renews leaves the key alone, what a part names changes it.

use domain::ci::{Identity, IdentityError};

use super::jobs::Job;

/// Variables that a source names and that count only where another is missing, and how the other is called.
const SPARE: &[(&str, &str, &str)] = &[("bamboo", "bamboo_buildResultsUrl", "bamboo_resultsUrl")];

/// Other values that a variable could have, of its own kind where that matters.
fn others(value: &str) -> Vec<String> {
    if let Some((scheme, rest)) = value.split_once("://") {
        return vec![format!("{scheme}://other.{rest}")];
    }
    if let Ok(number) = value.parse::<u64>() {
        return vec![(number + 1).to_string(), number.saturating_sub(1).to_string()];
    }
    match value.strip_prefix('{') {
        Some(json) if json.starts_with('"') => vec![format!("{{\"more\":\"x\",{json}")],
        Some(rest) => vec![format!("{{0{rest}")],
        None => vec![format!("{value}x")],
    }
}

/// The first of the other values that can be one.
fn changed(job: &Job, variable: &str) -> Result<Identity, IdentityError> {
    let mut last = None;
    for other in others(job.value(variable)) {
        match job.derived(&[(variable, &other)], &job.flags) {
            Ok(identity) => return Ok(identity),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap())
}

#[test]
fn what_a_retry_renews_leaves_the_key_alone() {
    let mut judged = 0;
    for job in Job::all() {
        let identity = job.derived(&[], &job.flags).unwrap_or_else(|error| panic!("{}: {error}", job.slug()));
        for left in identity.left_out.iter().filter(|left| left.renewed) {
            let title = format!("{}: {}", job.slug(), left.variable);
            assert_ne!(job.value(left.variable), "", "{title} is left out and not set");
            let mut values = others(job.value(left.variable));
            values.push(String::new());
            for value in values {
                let key = job.key(&[(left.variable, &value)], &job.flags);
                assert_eq!(key, identity.key.as_str(), "{title} = {value:?}");
                judged += 1;
            }
        }
    }
    assert!(judged >= 100, "only {judged} changes");
}

#[test]
fn what_a_part_names_changes_the_key() {
    let mut judged = 0;
    let mut spare = Vec::new();
    for job in Job::all() {
        let identity = job.derived(&[], &job.flags).unwrap_or_else(|error| panic!("{}: {error}", job.slug()));
        let named = identity.explained.iter().filter(|part| part.in_key && !part.source.starts_with("--"));
        for variable in named.flat_map(|part| part.source.split(", ")) {
            let title = format!("{}: {variable}", job.slug());
            if let Some(row) = SPARE.iter().find(|(slug, name, _)| *slug == job.slug() && *name == variable) {
                assert_ne!(job.value(row.2), "", "{title} stands in for {}, which is not set", row.2);
                spare.push(row);
                continue;
            }
            let other = changed(&job, variable).unwrap_or_else(|error| panic!("{title}: {error}"));
            assert_ne!(other.key, identity.key, "{title} is named as a source, and changes nothing");
            judged += 1;
        }
    }
    assert!(judged >= 80, "only {judged} changes");
    for row in SPARE {
        assert!(spare.contains(&row), "{row:?} is no source any more");
    }
}

#[test]
fn what_stands_in_counts_where_the_other_is_missing() {
    for (slug, variable, other) in SPARE {
        let job = Job::of(slug);
        let first = job.key(&[(other, "")], &job.flags);
        let value = others(job.value(variable)).remove(0);
        assert_ne!(job.key(&[(other, ""), (variable, &value)], &job.flags), first, "{slug}: {variable}");
    }
}

#[test]
fn other_flags_give_other_keys_everywhere() {
    for job in Job::all() {
        let mut seen = vec![job.key(&[], &job.flags)];
        let mut flags = job.flags.clone();
        flags.run = domain::RunId::parse("another run").ok();
        flags.job = flags.job.or_else(|| domain::JobName::parse("a job").ok());
        seen.push(job.key(&[], &flags));
        flags.job = domain::JobName::parse("another job").ok();
        seen.push(job.key(&[], &flags));
        flags.shard = domain::ShardRef::new(7, Some(9)).ok();
        seen.push(job.key(&[], &flags));
        flags.variant = domain::Variant::from_pairs([("os", "another")]).ok();
        seen.push(job.key(&[], &flags));
        let all = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), all, "{}: {seen:?}", job.slug());
    }
}
