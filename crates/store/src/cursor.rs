//! The place in an items listing where a page ended, as text. Must not know how listings are made.

use domain::listing::ItemSort;
use domain::{Digest, ItemHash, Variant};

/// The last item of a page. A name is not kept: the item's hash tells it, and it never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ItemCursor {
    /// Duration value or badness, by which the page was sorted; 0 for names.
    pub(crate) key: u64,
    pub(crate) hash: ItemHash,
    /// Tells one variant from another.
    pub(crate) variant: String,
}

impl ItemCursor {
    pub(crate) fn new(key: u64, hash: ItemHash, variant: &Variant) -> Self {
        Self { key, hash, variant: variant_tag(variant) }
    }

    pub(crate) fn to_text(&self, sort: ItemSort) -> String {
        format!("{}{}.{}.{}", letter(sort), self.key, self.hash, self.variant)
    }

    /// Back from a text that a listing of the same order gave.
    pub(crate) fn parse(text: &str, sort: ItemSort) -> Option<Self> {
        let rest = text.strip_prefix(letter(sort))?;
        let mut parts = rest.split('.');
        let (key, hash, variant) = (parts.next()?, parts.next()?, parts.next()?);
        let fits = parts.next().is_none() && variant.len() == 16;
        Some(Self { key: key.parse().ok()?, hash: ItemHash::parse(hash)?, variant: variant.to_owned() })
            .filter(|_| fits)
    }
}

/// A variant in few octets.
pub(crate) fn variant_tag(variant: &Variant) -> String {
    let mut text = String::new();
    for (name, value) in variant.iter() {
        for part in [name, value] {
            text += &part.len().to_string();
            text.push(':');
            text += part;
        }
    }
    Digest::of(text.as_bytes()).to_string()[..16].to_owned()
}

fn letter(sort: ItemSort) -> char {
    match sort {
        ItemSort::Name => 'n',
        ItemSort::Duration => 'd',
        ItemSort::Status => 's',
    }
}
