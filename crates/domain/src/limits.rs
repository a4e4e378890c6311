//! Every bound of the system in one list, with its unit and its reason. Must not read configuration.

/// A push key, in octets: fits the 255 that servers commonly accept, with room for `:chunk:N`.
pub const KEY_BYTES_MAX: usize = 240;
/// A key as the server accepts it from any client, in octets (design, section 6).
pub const KEY_HEADER_BYTES_MAX: usize = 255;
/// A project name, in octets.
pub const PROJECT_BYTES_MAX: usize = 100;
/// Any other name (cycle, run, job, executor, …), in octets.
pub const NAME_BYTES_MAX: usize = 1024;
/// Shards of one job.
pub const SHARDS_MAX: u32 = 100_000;
/// One part of an item's identity, in octets; a longer one is cut and ends in its hash.
pub const ITEM_PART_BYTES_MAX: usize = 4096;
/// Levels of an item's suite path; deeper ones are folded into the last.
pub const SUITE_DEPTH_MAX: usize = 64;
/// One message or trace, in octets: its head and tail are kept, the middle is cut and said.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;
/// Attempts kept of one outcome; the middle ones of more are dropped, and said.
pub const ATTEMPTS_MAX: usize = 64;
/// External case ids kept of one outcome.
pub const EXTERNAL_IDS_MAX: usize = 64;
/// Attachments kept of one push: files that its reports name beside items.
pub const ATTACHMENTS_MAX: usize = 10_000;
/// The path of an attachment as a report writes it, in octets.
pub const ATTACHMENT_PATH_BYTES_MAX: usize = 4096;
/// One attachment that is taken along, in bytes, unless configured.
pub const ATTACHMENT_BYTES_MAX: u64 = 10 * 1024 * 1024;
/// Outcomes in one push that is not staged.
pub const OUTCOMES_MAX: usize = 5_000_000;
/// Outcomes of one push that a server hands on to a target: it is held whole meanwhile, as outcomes, as entries and as what
/// is kept of each call, and memory stays bounded (design, section 12). If each has a message of
/// [`FORWARDED_TEXT_CHARS_MAX`], that is about a gigabyte.
pub const FORWARDED_OUTCOMES_MAX: u64 = 100_000;
/// Characters of a message that go on to a target: more than most products take.
pub const FORWARDED_TEXT_CHARS_MAX: usize = 4000;
/// Outcomes in one staged push.
pub const STAGED_OUTCOMES_MAX: usize = 50_000_000;
/// A push whose compressed body is larger than this is staged, in bytes (design, section 6).
pub const ONE_SHOT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// A push of more outcomes than this is staged: whole, it would take more memory than a chunk may.
pub const ONE_SHOT_OUTCOMES_MAX: usize = 65_536;
/// Chunks of one staged push: what a commit looks at.
pub const CHUNKS_MAX: usize = 1024;
/// Outcomes of a chunk on average, at most, unless that makes more than [`CHUNKS_MAX`].
pub const CHUNK_OUTCOMES: u64 = 16_384;
/// A chunk before it is compressed, in bytes on average, at most, unless that makes more than [`CHUNKS_MAX`].
pub const CHUNK_TEXT_BYTES: u64 = 8 * 1024 * 1024;
/// Bytes of a manifest's items and verdicts, compressed, up to which it carries them.
pub const ITEM_VECTOR_BYTES_MAX: usize = 1024 * 1024;
/// How long an epoch must be idle before another client of no higher attempt takes over, in milliseconds.
pub const EPOCH_IDLE_MS: u64 = 30_000;
/// How long staging may be idle before it is collected, in milliseconds.
pub const STAGING_LIFETIME_MS: u64 = 24 * 3600 * 1000;
/// How far apart it must be seen idle twice before it is collected, in milliseconds: a clock that jumped is seen once.
pub const STAGING_SECOND_LOOK_MS: u64 = 3600 * 1000;
/// Names of report files kept of one push.
pub const FILES_MAX: usize = 100_000;
/// A request body as it arrives (compressed), in bytes, unless configured.
pub const BODY_BYTES_MAX: usize = 32 * 1024 * 1024;
/// A request body after inflating, in bytes, unless configured.
pub const INFLATED_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// A compressed report that a client reads piece by piece, after inflating, in bytes: one of 50 million tests fits.
pub const STAGED_INFLATED_BYTES_MAX: u64 = 64 * 1024 * 1024 * 1024;
/// Inflated bytes per compressed byte beyond the first mebibyte: an honest report reaches some hundreds.
pub const INFLATE_RATIO_MAX: u64 = 1100;
/// Nesting of a JSON or XML document.
pub const NESTING_MAX: usize = 256;
/// Item samples listed in an answer.
pub const SAMPLES_MAX: usize = 10;
/// Changed items listed in a receipt or an answer; all of them are at `/differences/{n}`.
pub const DIFFERENCE_ITEMS_MAX: usize = 100;
/// Items on one page of a listing.
pub const PAGE_ITEMS_MAX: usize = 1000;
/// Seconds that an attach may wait (`Prefer: wait=N`).
pub const ATTACH_WAIT_SECONDS_MAX: u64 = 30;
