//! Packs a push: whole where it is small, else in chunks that are cut, digested and compressed one after the other, so
//! that memory holds a few chunks and never all. Must not choose where a parcel goes.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, Scope};

use domain::content::leaf_bits;
use domain::manifest::chunk_bits;
use domain::verdict::Light;
use domain::{Counts, Digest, Digests, ItemHash, Outcomes, limits};
use sha2::{Digest as _, Sha256};

use super::bodies::{Scratch, Sink};
use super::source::{Cut, text_bytes};
use super::{BodyPlace, Form, Header, Label, PackError, Parcel, Source, body};
use crate::destination::Destination;

/// Threads that compress while the next chunk is cut: with it, two cores are busy.
const WORKERS: usize = 2;
/// Bytes of a manifest's items and verdicts before they are compressed, of one item. Hashes don't get smaller.
const ITEM_BYTES: u64 = 16;

/// What is packed.
pub enum Contents<'a> {
    /// Outcomes in memory.
    Held(Outcomes),
    /// Outcomes elsewhere.
    Streamed(&'a dyn Source),
}

/// How it is packed.
#[derive(Debug, Clone)]
pub struct Packing<'a> {
    /// Where it goes; `None` for whatever destination a trusted job will flush it to (`push --seal`).
    pub destination: Option<&'a Destination>,
    /// When (RFC 3339, UTC). Decides nothing.
    pub created_at: String,
    /// Where the bodies of a large push lie until its file is written.
    pub scratch: Scratch<'a>,
    /// More outcomes than this are staged, in chunks of about so many at most. `None` for the bounds of [`limits`].
    pub chunk_outcomes: Option<u64>,
}

impl Packing<'_> {
    /// Packs. The same outcomes make the same bodies, whatever the order in which their files were read.
    pub fn pack(self, label: Label, contents: Contents<'_>) -> Result<Parcel, PackError> {
        match contents {
            Contents::Streamed(source) => self.pack_source(label, source),
            Contents::Held(outcomes) => {
                let raw_body = label.raw_body;
                let parcel = self.pack_source(label, &outcomes)?;
                // Whoever records it in this process needs no decoding.
                if parcel.header.form != Form::Whole {
                    return Ok(parcel);
                }
                let mut content = parcel.header.content_id();
                content.body = raw_body;
                let push = super::push_of(&parcel.header, outcomes, content);
                Ok(Parcel { push: Some(Arc::new(push)), ..parcel })
            }
        }
    }

    fn pack_source(self, label: Label, source: &dyn Source) -> Result<Parcel, PackError> {
        let outcomes = source.outcomes();
        if outcomes > limits::STAGED_OUTCOMES_MAX as u64 {
            return Err(PackError::TooManyOutcomes { outcomes });
        }
        let destination = self.destination.map(ToString::to_string).unwrap_or_default();
        let one_shot = limits::ONE_SHOT_OUTCOMES_MAX as u64;
        let small = outcomes <= self.chunk_outcomes.unwrap_or(one_shot).min(one_shot);
        let body = if small { body::whole(&label, source, limits::ONE_SHOT_BYTES_MAX)? } else { None };
        let mut header = Header::new(label, destination, self.created_at);
        if let Some(body) = body {
            return pack_whole(header, &body, source, self.scratch);
        }
        header.form = Form::Chunks { bits: bits_of(source, self.chunk_outcomes.unwrap_or(limits::CHUNK_OUTCOMES))? };
        pack_chunks(header, source, self.scratch)
    }
}

/// Into how many chunks a content is cut that nobody has refused yet.
fn bits_of(source: &dyn Source, chunk_outcomes: u64) -> Result<u8, PackError> {
    let outcomes = source.outcomes();
    let by_number = chunk_bits(outcomes, 0, chunk_outcomes, 0);
    // Counting the text takes a walk over all; where it can't matter that is spared.
    if source.text_bytes_max().is_some_and(|bytes| chunk_bits(outcomes, bytes, chunk_outcomes, 0) == by_number) {
        return Ok(by_number);
    }
    Ok(chunk_bits(outcomes, text_bytes(source)?, chunk_outcomes, 0))
}

fn pack_whole(mut header: Header, body: &[u8], source: &dyn Source, scratch: Scratch<'_>) -> Result<Parcel, PackError> {
    let read;
    let outcomes = if let Some(outcomes) = source.held() {
        outcomes
    } else {
        read = all_of(source)?;
        &read
    };
    let digests = outcomes.digests();
    (header.content, header.outcome_digest) = (digests.content, digests.outcomes);
    (header.outcomes, header.counts) = (outcomes.len() as u64, outcomes.counts());
    // So small that it needs no file.
    let mut sink = Sink::open(if matches!(scratch, Scratch::Nowhere) { scratch } else { Scratch::Memory })?;
    let at = sink.put(body)?;
    header.chunks =
        vec![BodyPlace { at, bytes: body.len() as u64, sha256: sha256(body), outcomes: outcomes.len() as u32 }];
    Ok(Parcel { header, bodies: sink.done()?, push: None })
}

fn all_of(source: &dyn Source) -> Result<Outcomes, PackError> {
    let (mut hashes, mut outcomes) = (Vec::new(), Vec::new());
    for part in source.parts() {
        let (more_hashes, more) = part?.into_parts();
        hashes.extend(more_hashes);
        outcomes.extend(more);
    }
    Ok(Outcomes::from_hashed(hashes, outcomes)?)
}

pub(super) fn sha256(bytes: &[u8]) -> Digest {
    Digest(Sha256::digest(bytes).into())
}

/// The bits of a cut that is one step finer, if there is one.
pub(super) fn finer(header: &Header, source: &dyn Source) -> Result<Option<u8>, PackError> {
    let most = (limits::CHUNKS_MAX.trailing_zeros() as u8).min(leaf_bits(header.outcomes));
    Ok(match header.form {
        // In one chunk it would be as large as it was whole.
        Form::Whole => Some(bits_of(source, limits::CHUNK_OUTCOMES)?.max(1).min(most)),
        Form::Chunks { bits } => Some(bits + 1).filter(|bits| *bits <= most),
    })
}

/// Packs into the chunks that `header.form` says.
pub(super) fn pack_chunks(mut header: Header, source: &dyn Source, scratch: Scratch<'_>) -> Result<Parcel, PackError> {
    let Form::Chunks { bits } = header.form else { return Err(PackError::Order) };
    let total = source.outcomes();
    let mut packed = Packed {
        sink: Sink::open(scratch)?,
        chunks: Vec::with_capacity(1 << bits),
        digests: Vec::with_capacity(1 << bits),
        counts: Counts::default(),
        items: (total * ITEM_BYTES <= limits::ITEM_VECTOR_BYTES_MAX as u64).then(Vec::new),
    };
    thread::scope(|scope| -> Result<(), PackError> {
        let workers: Vec<Worker> =
            (0..WORKERS).map(|_| Worker::start(scope, Task { total, bits, items: packed.items.is_some() })).collect();
        let mut collected = 0;
        for (number, chunk) in Cut::new(source, bits).enumerate() {
            if number - collected == WORKERS {
                packed.take(workers[collected % WORKERS].result()?)?;
                collected += 1;
            }
            workers[number % WORKERS].give(chunk?)?;
        }
        for number in collected..1 << bits {
            packed.take(workers[number % WORKERS].result()?)?;
        }
        Ok(())
    })?;
    let Packed { mut sink, chunks, digests, counts, items } = packed;
    if counts.total != total {
        return Err(PackError::Number { said: total, found: counts.total });
    }
    let digests = Digests::of_chunks(digests);
    (header.content, header.outcome_digest) = (digests.content, digests.outcomes);
    (header.outcomes, header.counts, header.chunks) = (total, counts, chunks);
    header.items = items.map(|items| put_items(&mut sink, &items)).transpose()?.flatten();
    Ok(Parcel { header, bodies: sink.done()?, push: None })
}

/// All hashes, then all verdicts, compressed, if that is small enough.
fn put_items(sink: &mut Sink, items: &[(ItemHash, Light)]) -> Result<Option<BodyPlace>, PackError> {
    let mut bytes: Vec<u8> = items.iter().flat_map(|(hash, _)| hash.0).collect();
    bytes.extend(items.iter().map(|(_, light)| light.code()));
    let compressed = body::compress(&bytes)?;
    if compressed.len() > limits::ITEM_VECTOR_BYTES_MAX {
        return Ok(None);
    }
    let at = sink.put(&compressed)?;
    let (bytes, sha256) = (compressed.len() as u64, sha256(&compressed));
    Ok(Some(BodyPlace { at, bytes, sha256, outcomes: items.len() as u32 }))
}

/// What is packed so far.
struct Packed {
    sink: Sink,
    chunks: Vec<BodyPlace>,
    digests: Vec<Digests>,
    counts: Counts,
    items: Option<Vec<(ItemHash, Light)>>,
}

impl Packed {
    fn take(&mut self, done: Done) -> Result<(), PackError> {
        let at = self.sink.put(&done.body)?;
        let (bytes, outcomes) = (done.body.len() as u64, done.counts.total as u32);
        self.chunks.push(BodyPlace { at, bytes, sha256: done.sha256, outcomes });
        self.digests.push(done.digests);
        self.counts += done.counts;
        if let Some(items) = &mut self.items {
            items.extend(done.items);
        }
        Ok(())
    }
}

/// What every chunk of a push has in common.
#[derive(Clone, Copy)]
struct Task {
    total: u64,
    bits: u8,
    items: bool,
}

/// A chunk, done.
struct Done {
    body: Vec<u8>,
    sha256: Digest,
    digests: Digests,
    counts: Counts,
    items: Vec<(ItemHash, Light)>,
}

impl Task {
    fn run(self, chunk: &Outcomes) -> std::io::Result<Done> {
        let body = body::chunk(chunk)?;
        let items = if self.items { chunk.iter().map(|(hash, o)| (hash, Light::of(o))).collect() } else { Vec::new() };
        Ok(Done {
            sha256: sha256(&body),
            digests: Digests::of_chunk(chunk, self.total, self.bits),
            counts: chunk.counts(),
            items,
            body,
        })
    }
}

/// A thread that does one chunk after the other, in order.
struct Worker {
    chunks: SyncSender<Outcomes>,
    done: Receiver<std::io::Result<Done>>,
}

impl Worker {
    fn start<'scope>(scope: &'scope Scope<'scope, '_>, task: Task) -> Self {
        let (chunks, todo) = sync_channel::<Outcomes>(1);
        let (finished, done) = sync_channel(1);
        scope.spawn(move || {
            while let Ok(chunk) = todo.recv() {
                // Nobody listens any more after an error.
                if finished.send(task.run(&chunk)).is_err() {
                    return;
                }
            }
        });
        Self { chunks, done }
    }

    fn give(&self, chunk: Outcomes) -> Result<(), PackError> {
        self.chunks.send(chunk).map_err(|_| ended())
    }

    fn result(&self) -> Result<Done, PackError> {
        Ok(self.done.recv().map_err(|_| ended())??)
    }
}

fn ended() -> PackError {
    PackError::Encode(std::io::Error::other("a thread that compresses has ended"))
}
