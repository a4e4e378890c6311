//! Which case an item has: by an id that it names, by a title, or a new one. Must not know where cases are kept.

use std::collections::BTreeMap;

use async_trait::async_trait;
use domain::ItemName;

use super::{TITLE_CHARS_MAX, cut};
use crate::foreign::entry::{Case, CaseChoice, CaseId, CaseWanted};
use crate::foreign::mapping::{IdShape, each_once, ids_in, is_id};
use crate::foreign::trouble::{Trouble, before_writing};

/// The cases of a project by their titles.
#[derive(Debug, Clone, Default)]
pub(in crate::foreign::kinds) struct Titles(BTreeMap<String, Vec<CaseId>>);

impl Titles {
    /// One more case.
    pub(in crate::foreign::kinds) fn add(&mut self, title: &str, case: CaseId) {
        self.0.entry(title.trim().to_owned()).or_default().push(case);
    }

    fn of(&self, title: &str) -> Option<(&str, &[CaseId])> {
        self.0.get_key_value(title).map(|(title, cases)| (title.as_str(), cases.as_slice()))
    }

    /// By the item as people read it, by `class.name`, and, if no other item is called so, by its name alone.
    fn find(&self, item: &ItemName, name_is_single: bool) -> Option<(&str, &[CaseId])> {
        let dotted = item.class().map(|class| format!("{class}.{}", item.name()));
        let name = name_is_single.then(|| item.name().to_owned());
        let mut texts = [Some(title_of(item)), dotted, name].into_iter().flatten();
        texts.find_map(|text| self.of(cut(&text, TITLE_CHARS_MAX).trim()))
    }
}

/// Older cases have smaller numbers.
fn age(case: &CaseId) -> Option<u64> {
    case.as_str().rsplit_once('-')?.1.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().ok()
}

/// What a case that is made for an item is called.
fn title_of(item: &ItemName) -> String {
    cut(&item.to_string(), TITLE_CHARS_MAX).trim().to_owned()
}

/// Where cases are listed and made.
#[async_trait]
pub(in crate::foreign::kinds) trait Cases: Sync {
    /// All cases of the project.
    async fn titles(&self) -> Result<Titles, Trouble>;

    /// Makes one more.
    async fn create_case(&self, title: &str) -> Result<CaseId, Trouble>;
}

/// How cases are chosen.
#[derive(Debug, Clone)]
pub(in crate::foreign::kinds) struct CaseRules {
    /// How ids look.
    pub(in crate::foreign::kinds) shape: IdShape,
    /// The project's key. Names are full of what only looks like an id (`UTF-8`, `SHA-256`): an id in a name counts
    /// if it is of this project; those in properties and in the mapping file are meant, and may be of another.
    pub(in crate::foreign::kinds) project: String,
    /// Whether cases are made.
    pub(in crate::foreign::kinds) create: bool,
}

impl CaseRules {
    /// `Err` if the mapping file says something that is no case.
    fn named(&self, wanted: &CaseWanted<'_>) -> Result<Vec<CaseId>, String> {
        if let Some(mapped) = wanted.mapped {
            // As the product spells it: it takes `shop-12` too, but lists `SHOP-12`, and so would never show it again.
            let text = mapped.as_str().trim();
            let whole = || format!("{text:?} in the mapping file is no case such as {}", self.example());
            return if is_id(text, self.shape) { Ok(vec![CaseId::new(text)]) } else { Err(whole()) };
        }
        let own = |id: &String| id.rsplit_once('-').is_some_and(|(project, _)| project == self.project);
        let given = each_once(wanted.given().flat_map(|text| ids_in(text, self.shape)));
        let in_name = || each_once(ids_in(wanted.item.name(), self.shape).into_iter().filter(own));
        let ids = if given.is_empty() { in_name() } else { given };
        Ok(ids.into_iter().map(CaseId::new).collect())
    }

    fn example(&self) -> String {
        let (IdShape::Prefixed(letters) | IdShape::Dashed(letters)) = self.shape;
        format!("{}-{letters}12", self.project)
    }

    /// The case of each item. Lists the project's cases at most once, and only if some item names none by itself.
    pub(in crate::foreign::kinds) async fn choose(
        &self,
        cases: &impl Cases,
        wanted: &[CaseWanted<'_>],
    ) -> Result<Vec<CaseChoice>, Trouble> {
        let named: Vec<Result<Vec<CaseId>, String>> = wanted.iter().map(|wanted| self.named(wanted)).collect();
        let known = |ids: Result<Vec<CaseId>, String>, title: &str| match ids {
            Ok(ids) => {
                CaseChoice::of(ids.into_iter().map(|id| CaseChoice::Known(Case { id, title: title.to_owned() })))
            }
            Err(why) => CaseChoice::Unmatched { why },
        };
        let is_open = |ids: &Result<Vec<CaseId>, String>| ids.as_ref().is_ok_and(Vec::is_empty);
        if !named.iter().any(is_open) {
            return Ok(named.into_iter().zip(wanted).map(|(ids, wanted)| known(ids, &title_of(wanted.item))).collect());
        }
        let mut titles = cases.titles().await.map_err(before_writing)?;
        let mut names: BTreeMap<&str, usize> = BTreeMap::new();
        for wanted in wanted {
            *names.entry(wanted.item.name()).or_default() += 1;
        }
        let mut choices = Vec::with_capacity(wanted.len());
        for (named, wanted) in named.into_iter().zip(wanted) {
            let title = title_of(wanted.item);
            let single = names.get(wanted.item.name()) == Some(&1);
            if !is_open(&named) {
                choices.push(known(named, &title));
                continue;
            }
            choices.push(match titles.find(wanted.item, single) {
                Some((title, [id])) => CaseChoice::Known(Case { id: id.clone(), title: title.to_owned() }),
                // Made by us, and made twice: by two writers at once, or by a request that came late.
                Some((found, several)) if self.create && found == title => {
                    match several.iter().min_by_key(|case| age(case)) {
                        Some(id) => CaseChoice::Known(Case { id: id.clone(), title }),
                        None => CaseChoice::Unmatched { why: self.why(&title) },
                    }
                }
                Some((title, several)) => CaseChoice::Unmatched {
                    why: format!("{} cases of {} are called {title:?}", several.len(), self.project),
                },
                None if self.create => {
                    let id = cases.create_case(&title).await?;
                    titles.add(&title, id.clone());
                    CaseChoice::Known(Case { id, title })
                }
                None => CaseChoice::Unmatched { why: self.why(&title) },
            });
        }
        Ok(choices)
    }

    fn why(&self, title: &str) -> String {
        let (example, project) = (self.example(), &self.project);
        format!("no id such as {example} in its properties or name, and no case of {project} called {title:?}")
    }
}

#[cfg(test)]
mod tests {
    use domain::ExternalId;

    use super::*;

    fn rules() -> CaseRules {
        CaseRules { shape: IdShape::Dashed(""), project: "SHOP".to_owned(), create: false }
    }

    #[test]
    fn only_ids_of_the_project_count_in_names() {
        let named = |name: &str, external: &[&str]| {
            let item = ItemName::new(None::<&str>, None, name);
            let external: Vec<ExternalId> = external.iter().map(|id| ExternalId::from((*id).to_owned())).collect();
            let named = rules().named(&CaseWanted { item: &item, external_ids: &external, mapped: None });
            named.unwrap().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let none = Vec::<String>::new();
        assert_eq!(named("reads UTF-8 [SHOP-12]", &[]), ["SHOP-12"]);
        assert_eq!(named("reads UTF-8", &[]), none);
        assert_eq!(named("SHOP-12", &["LIB-3"]), ["LIB-3"]);
        assert_eq!(named("[SHOP-1] [SHOP-2] both", &[]), ["SHOP-1", "SHOP-2"]);
        assert_eq!(named("both", &["SHOP-1, SHOP-2", "LIB-3"]), ["SHOP-1", "SHOP-2", "LIB-3"]);
        // What readers of reports find in a name is no more than the name.
        assert_eq!(named("test_hash[SHA-256]", &["name:SHA-256"]), none);
        assert_eq!(named("pays", &["requirement:SHOP-100"]), none);
    }

    #[test]
    fn the_mapping_file_spells_cases_as_the_product_does() {
        let item = ItemName::new(None::<&str>, None, "adds");
        for (text, is_one) in [("LIB-7", true), (" SHOP-7 ", true), ("shop-7", false), ("SHOP-T7", false), ("7", false)]
        {
            let mapped = CaseId::new(text);
            let named = rules().named(&CaseWanted { item: &item, external_ids: &[], mapped: Some(&mapped) });
            assert_eq!(named.is_ok(), is_one, "{text}: {named:?}");
        }
    }

    #[test]
    fn of_several_that_were_made_the_oldest_counts() {
        let oldest = ["SHOP-T12", "SHOP-T9", "SHOP-T100"].map(CaseId::new);
        assert_eq!(oldest.iter().min_by_key(|case| age(case)), Some(&oldest[1]));
    }
}
