//! Which case an item has: by an id that it names, by a title, or a new one. Must not know where cases are kept.

use std::collections::BTreeMap;

use async_trait::async_trait;
use domain::ItemName;

use super::{TITLE_CHARS_MAX, cut};
use crate::foreign::entry::{Case, CaseChoice, CaseId, CaseWanted};
use crate::foreign::mapping::{IdShape, ids_in};
use crate::foreign::trouble::Trouble;

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
    fn named(&self, wanted: &CaseWanted<'_>) -> Option<CaseId> {
        if let Some(mapped) = wanted.mapped {
            return Some(mapped.clone());
        }
        let given = wanted.external_ids.iter().flat_map(|text| ids_in(text, self.shape)).next();
        let own = |id: &String| id.rsplit_once('-').is_some_and(|(project, _)| project == self.project);
        given.or_else(|| ids_in(wanted.item.name(), self.shape).into_iter().find(own)).map(CaseId::new)
    }

    /// The case of each item. Lists the project's cases at most once, and only if some item names none by itself.
    pub(in crate::foreign::kinds) async fn choose(
        &self,
        cases: &impl Cases,
        wanted: &[CaseWanted<'_>],
    ) -> Result<Vec<CaseChoice>, Trouble> {
        let named: Vec<Option<CaseId>> = wanted.iter().map(|wanted| self.named(wanted)).collect();
        if named.iter().all(Option::is_some) {
            let known = |(id, wanted): (Option<CaseId>, &CaseWanted<'_>)| {
                id.map(|id| CaseChoice::Known(Case { id, title: title_of(wanted.item) }))
            };
            return Ok(named.into_iter().zip(wanted).filter_map(known).collect());
        }
        let mut titles = cases.titles().await?;
        let mut names: BTreeMap<&str, usize> = BTreeMap::new();
        for wanted in wanted {
            *names.entry(wanted.item.name()).or_default() += 1;
        }
        let mut choices = Vec::with_capacity(wanted.len());
        for (named, wanted) in named.into_iter().zip(wanted) {
            let title = title_of(wanted.item);
            let single = names.get(wanted.item.name()) == Some(&1);
            choices.push(match (named, titles.find(wanted.item, single)) {
                (Some(id), _) => CaseChoice::Known(Case { id, title }),
                (None, Some((title, [id]))) => CaseChoice::Known(Case { id: id.clone(), title: title.to_owned() }),
                (None, Some((title, several))) => CaseChoice::Unmatched {
                    why: format!("{} cases of {} are called {title:?}", several.len(), self.project),
                },
                (None, None) if self.create => {
                    let id = cases.create_case(&title).await?;
                    titles.add(&title, id.clone());
                    CaseChoice::Known(Case { id, title })
                }
                (None, None) => CaseChoice::Unmatched { why: self.why(&title) },
            });
        }
        Ok(choices)
    }

    fn why(&self, title: &str) -> String {
        let (IdShape::Prefixed(letters) | IdShape::Dashed(letters)) = self.shape;
        let project = &self.project;
        format!(
            "no id such as {project}-{letters}12 in its properties or name, and no case of {project} called {title:?}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> CaseRules {
        CaseRules { shape: IdShape::Dashed(""), project: "SHOP".to_owned(), create: false }
    }

    #[test]
    fn only_ids_of_the_project_count_in_names() {
        let named = |name: &str, external: &[String]| {
            let item = ItemName::new(None::<&str>, None, name);
            rules().named(&CaseWanted { item: &item, external_ids: external, mapped: None })
        };
        assert_eq!(named("reads UTF-8 [SHOP-12]", &[]), Some(CaseId::new("SHOP-12")));
        assert_eq!(named("reads UTF-8", &[]), None);
        assert_eq!(named("SHOP-12", &["LIB-3".to_owned()]), Some(CaseId::new("LIB-3")));
    }
}
