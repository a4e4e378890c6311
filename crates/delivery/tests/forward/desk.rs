//! Where processes forward, and what stands there then. Must not judge it.

use std::collections::BTreeMap;
use std::sync::Arc;

use delivery::Stop;
use delivery::foreign::{Adapter as _, Forwarded, Forwarder, Halt, KeyOnWrite, Load, TargetName, VerdictRule};
use domain::intent::{Flag, Intent};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::book::MemoryBook;
use crate::faults::facts;
use crate::product::Product;
use crate::world::World;

/// Longer than anything takes.
pub(crate) const LONG_MS: u64 = 3_600_000;

/// A product of such a kind, and an empty ledger.
pub(crate) fn site_of(verdict: VerdictRule, key: KeyOnWrite) -> (Arc<World>, Product, MemoryBook) {
    let world = Arc::new(World::new(1));
    let product = Product::new(&world, facts(verdict, key));
    let book = MemoryBook::new(&world);
    (world, product, book)
}

/// One that appends and takes no key.
pub(crate) fn site() -> (Arc<World>, Product, MemoryBook) {
    site_of(VerdictRule::Appends, KeyOnWrite::None)
}

/// The cases of all that is recorded there, sorted.
pub(crate) fn cases(product: &Product) -> Vec<String> {
    let mut cases: Vec<String> = product.recorded().into_iter().map(|(case, _)| case.to_string()).collect();
    cases.sort();
    cases
}

/// A process that forwards, with so much time.
pub(crate) async fn forward(
    world: &Arc<World>,
    product: &Product,
    book: &MemoryBook,
    load: Load,
    deadline_ms: u64,
) -> Option<Result<Forwarded, Halt>> {
    Desk { world, product, book, sole: false }.forward(load, deadline_ms).await
}

/// Everything of the ledger is looked at again; the flags that are left.
pub(crate) async fn sweep(world: &Arc<World>, product: &Product, book: &MemoryBook) -> Vec<Flag> {
    Desk { world, product, book, sole: false }.sweep().await
}

/// Where processes forward, and whether nobody else does.
#[derive(Clone, Copy)]
pub(crate) struct Desk<'a> {
    pub(crate) world: &'a Arc<World>,
    pub(crate) product: &'a Product,
    pub(crate) book: &'a MemoryBook,
    pub(crate) sole: bool,
}

impl Desk<'_> {
    /// A process that forwards; `None` if it died.
    pub(crate) async fn forward(self, load: Load, deadline_ms: u64) -> Option<Result<Forwarded, Halt>> {
        let world = self.world;
        world.process(self.alive(load, deadline_ms)).await
    }

    /// The same, of which nothing dies.
    pub(crate) async fn alive(self, load: Load, deadline_ms: u64) -> Result<Forwarded, Halt> {
        let seed = self.world.below(u64::MAX);
        self.doing(seed, deadline_ms, async |forwarder| forwarder.forward(load).await).await
    }

    /// Everything of the ledger is looked at again; the flags that are left.
    pub(crate) async fn sweep(self) -> Vec<Flag> {
        self.sweep_of(self.book.intents()).await.unwrap();
        self.book.flags()
    }

    /// The same of some of them, as somebody read them before.
    pub(crate) async fn sweep_of(self, intents: Vec<Intent>) -> Result<Vec<Intent>, Halt> {
        self.doing(1, LONG_MS, async |forwarder| forwarder.sweep(intents).await).await
    }

    /// What a forwarder does here within so much time.
    pub(crate) async fn doing<T>(
        self,
        seed: u64,
        deadline_ms: u64,
        work: impl AsyncFnOnce(&mut Forwarder<'_>) -> T,
    ) -> T {
        let Desk { world, product, book, sole } = self;
        let target = TargetName::parse("sim").unwrap();
        let (stop, mapping) = (Stop::new(), BTreeMap::new());
        let mut random = StdRng::seed_from_u64(seed);
        let mut forwarder = Forwarder {
            target: &target,
            adapter: product,
            mapping: &mapping,
            strategy: product.facts().default_strategy(),
            quiet_ms: product.facts().quiet_ms,
            sole,
            book,
            clock: &**world,
            random: &mut random,
            stop: &stop,
            deadline_ms: world.now() + deadline_ms,
            progress: &mut |_| {},
        };
        work(&mut forwarder).await
    }
}
