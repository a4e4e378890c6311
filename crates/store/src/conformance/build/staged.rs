//! Staged pushes out of whole ones, and short hands for begin, put, commit and cancel.

use std::sync::Arc;

use domain::content::chunk_of;
use domain::manifest::{ChunkPromise, ItemVector};
use domain::push::ContentId;
use domain::verdict::Light;
use domain::wire::ChunkBody;
use domain::{Digest, Epoch, Manifest, Outcome, Outcomes, Push, PushId};

use super::now;
use crate::{
    Answer, Begun, Cancelled, Chunk, Committed, EpochOf, Fence, Now, Put, Refused, Staging, StagingReport, Store,
};

/// A push cut into 2^`bits` chunks (see `domain::manifest::chunk_bits` for how many there may be). The manifest holds the
/// item vector, and no digest of a body; the chunks are for epoch 1. Instead of a SHA-256 of its body, a chunk has another digest of it.
pub fn staged(push: &Push, bits: u8) -> (Manifest, Vec<Chunk>) {
    let of = EpochOf {
        project: push.place.project.clone(),
        push: PushId::of(&push.place.project, &push.key),
        epoch: Epoch(1),
    };
    let chunk = |number: u32| {
        let here = push.outcomes.iter().filter(|(hash, _)| chunk_of(*hash, bits) == number);
        let outcomes: Vec<Outcome> = here.map(|(_, outcome)| outcome.clone()).collect();
        let body = ChunkBody { tallyonce: ChunkBody::VERSION, outcomes };
        let digest = Digest::of(&serde_json::to_vec(&body).expect("a body of outcomes"));
        let outcomes = Outcomes::from_unordered(body.outcomes).expect("one outcome an item");
        Chunk { of: of.clone(), number, digest, outcomes }
    };
    let chunks: Vec<Chunk> = (0..1 << bits).map(chunk).collect();
    let promise = |chunk: &Chunk| ChunkPromise { digest: chunk.digest, outcomes: chunk.outcomes.len() as u32 };
    let lights = push.outcomes.as_slice().iter().map(Light::of).collect();
    let manifest = Manifest {
        key: push.key.clone(),
        place: push.place.clone(),
        origin: push.origin.clone(),
        sender: push.sender.clone(),
        on_difference: push.on_difference,
        outside_ci: push.outside_ci,
        expect: push.expect,
        files: push.files.clone(),
        report: push.report,
        incomplete: push.incomplete,
        outcomes: push.outcomes.len() as u64,
        counts: push.outcomes.counts(),
        content: ContentId { body: None, ..push.content },
        bits,
        chunks: chunks.iter().map(promise).collect(),
        items: Some(ItemVector { hashes: push.outcomes.hashes().to_vec(), lights }),
    };
    (manifest, chunks)
}

/// A push on its way in chunks.
#[derive(Clone)]
pub struct Cut {
    pub manifest: Manifest,
    /// By number.
    pub chunks: Vec<Chunk>,
}

impl Cut {
    /// Without items in the manifest, so that what differs shows at the commit alone.
    pub fn blind(mut self) -> Self {
        self.manifest.items = None;
        self
    }

    /// An epoch of this push.
    pub fn epoch(&self, epoch: u64) -> EpochOf {
        EpochOf { project: self.manifest.place.project.clone(), push: self.manifest.push(), epoch: Epoch(epoch) }
    }

    pub async fn begin(&self, store: &Arc<dyn Store>, now: Now) -> Begun {
        store.begin(Arc::new(self.manifest.clone()), now).await.expect("the store works")
    }

    /// Begins, and an epoch has to be open for it.
    pub async fn begun(&self, store: &Arc<dyn Store>) -> Staging {
        match self.begin(store, now()).await {
            Begun::Staging(staging) => staging,
            other => panic!("not staging: {other:?}"),
        }
    }

    /// Begins, and has to be kept off.
    pub async fn fenced(&self, store: &Arc<dyn Store>) -> Fence {
        match self.begin(store, now()).await {
            Begun::Fenced(fence) => fence,
            other => panic!("not fenced: {other:?}"),
        }
    }

    /// Begins, and has to be refused.
    pub async fn refused(&self, store: &Arc<dyn Store>) -> domain::protocol::Refusal {
        match self.begin(store, now()).await {
            Begun::Refused(Refused { refusal, .. }) => refusal,
            other => panic!("not refused: {other:?}"),
        }
    }

    /// Begins, and has to get a stored receipt.
    pub async fn replayed(&self, store: &Arc<dyn Store>) -> Answer {
        match self.begin(store, now()).await {
            Begun::Replayed(answer) => {
                assert!(answer.replayed);
                answer
            }
            other => panic!("not replayed: {other:?}"),
        }
    }

    pub async fn put_at(&self, store: &Arc<dyn Store>, (epoch, number): (u64, usize), now: Now) -> Put {
        let chunk = Chunk { of: self.epoch(epoch), ..self.chunks[number].clone() };
        store.put(Arc::new(chunk), now).await.expect("the store works")
    }

    pub async fn put(&self, store: &Arc<dyn Store>, epoch: u64, number: usize) -> Put {
        self.put_at(store, (epoch, number), now()).await
    }

    /// Puts all chunks, and they have to be taken.
    pub async fn put_all(&self, store: &Arc<dyn Store>, epoch: u64) {
        for number in 0..self.chunks.len() {
            let put = self.put(store, epoch, number).await;
            assert!(matches!(put, Put::Stored { .. }), "chunk {number}: {put:?}");
        }
    }

    pub async fn commit(&self, store: &Arc<dyn Store>, epoch: u64) -> Committed {
        store.commit(self.epoch(epoch), now()).await.expect("the store works")
    }

    /// Commits, and it has to be accepted.
    pub async fn committed(&self, store: &Arc<dyn Store>, epoch: u64) -> Answer {
        match self.commit(store, epoch).await {
            Committed::Accepted(answer) => answer,
            other => panic!("not accepted: {other:?}"),
        }
    }

    pub async fn cancel(&self, store: &Arc<dyn Store>, epoch: u64) -> Cancelled {
        store.cancel(self.epoch(epoch), now()).await.expect("the store works")
    }

    /// What is staged under its key.
    pub async fn staging(&self, store: &Arc<dyn Store>, now: Now) -> Option<StagingReport> {
        let of = self.epoch(1);
        store.staging(&of.project, of.push, now).await.expect("the store works")
    }

    /// From begin to commit.
    pub async fn delivered(&self, store: &Arc<dyn Store>) -> Answer {
        let epoch = self.begun(store).await.epoch.0;
        self.put_all(store, epoch).await;
        self.committed(store, epoch).await
    }
}
