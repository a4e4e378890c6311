//! Bounds and freedoms of the runs: what the default form walks, and the whole.
//! Must not know how a step is made.

use domain::OnDifference;

/// Bounds and freedoms of one run.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) name: &'static str,
    pub(crate) runners: usize,
    /// Incarnations that one runner may have.
    pub(crate) generations: usize,
    pub(crate) chunks: u32,
    /// Contents that a runner may have, see [`crate::content`].
    pub(crate) contents: &'static [u8],
    /// Attempt numbers that a runner may have; 0 is "unknown".
    pub(crate) ordinals: &'static [u8],
    /// Executors that a runner may be; 0 is "unknown".
    pub(crate) executors: &'static [u8],
    /// Places that a runner may think it is in, see [`crate::content`].
    pub(crate) places: &'static [u8],
    pub(crate) epochs: u8,
    pub(crate) policy: OnDifference,
    /// Whether manifests carry items and verdicts, so that a begin can be decided on.
    pub(crate) vectors: bool,
    pub(crate) cancels: bool,
    /// Whether a commit may be refused for good for a reason outside the model.
    pub(crate) refusals: bool,
    pub(crate) gc: bool,
    /// Whether bodies may arrive damaged or with a number that is too high.
    pub(crate) damage: bool,
    pub(crate) attaches: bool,
    pub(crate) one_shots: bool,
    pub(crate) promotions: u8,
    /// Whether another shard pushes into the same round.
    pub(crate) neighbour: bool,
    pub(crate) deletes: bool,
    /// Whether a request may be taken in and applied, or aborted, at any later time.
    pub(crate) zombies: bool,
    /// Whether sending is a step of its own.
    pub(crate) sends: bool,
}

/// Two runners, each of two contents, at every pair of ordinals; each begins once, and may cancel or be refused.
pub(crate) const SMALL: Config = Config {
    name: "small",
    runners: 2,
    generations: 1,
    chunks: 2,
    contents: &[0, 1],
    ordinals: &[0, 1, 2],
    executors: &[0],
    places: &[0],
    epochs: 2,
    policy: OnDifference::Fail,
    vectors: true,
    cancels: true,
    refusals: true,
    gc: true,
    damage: false,
    attaches: false,
    one_shots: false,
    promotions: 0,
    neighbour: false,
    deletes: false,
    zombies: false,
    sends: false,
};

/// One runner and its rival, nothing free but the network.
pub(crate) const PLAIN: Config = Config { name: "plain", cancels: false, refusals: false, gc: false, ..SMALL };

/// Other outcomes after a commit are staged as a further revision.
pub(crate) const OVERLAYS: Config = Config { name: "overlays", policy: OnDifference::Auto, ..SMALL };

/// Each runner may be executed again once: other content, higher or unknown ordinal.
pub(crate) const AGAIN: Config = Config { name: "again", generations: 2, chunks: 1, epochs: 3, ..PLAIN };

/// The same, with overlays.
pub(crate) const AGAIN_OVERLAYS: Config = Config { name: "again, overlays", policy: OnDifference::Auto, ..AGAIN };

/// Executors at known ordinals: two legs that share a key.
pub(crate) const LEGS: Config = Config {
    name: "legs",
    chunks: 1,
    contents: &[0, 1],
    ordinals: &[0, 1, 2],
    executors: &[1, 2],
    policy: OnDifference::Auto,
    one_shots: true,
    ..PLAIN
};

/// Contents that equal others but for times or cuts, and one that is other work; begins that can't be decided on.
pub(crate) const CONTENTS: Config = Config {
    name: "contents",
    chunks: 1,
    contents: &[0, 1, 2, 3, 4],
    ordinals: &[0, 1],
    policy: OnDifference::Auto,
    vectors: false,
    ..PLAIN
};

/// An explicit `revise`.
pub(crate) const REVISE: Config = Config {
    name: "revise",
    generations: 2,
    contents: &[0, 1, 2],
    ordinals: &[0],
    policy: OnDifference::Revise,
    vectors: true,
    epochs: 3,
    ..CONTENTS
};

/// Wrong places, another shard of the round, deletion.
pub(crate) const PLACES: Config = Config {
    name: "places",
    chunks: 1,
    ordinals: &[0, 1],
    places: &[0, 1, 2],
    policy: OnDifference::Auto,
    neighbour: true,
    deletes: true,
    damage: true,
    ..PLAIN
};

/// What the round counts: overlays beside another shard, deliveries in one request, promotions.
pub(crate) const ROUND: Config =
    Config { name: "round", places: &[0], one_shots: true, promotions: 1, contents: &[0, 1, 5], ..PLACES };

/// People promote, at once and again, while runners go on.
pub(crate) const PROMOTIONS: Config = Config {
    name: "promotions",
    chunks: 1,
    ordinals: &[0, 1],
    policy: OnDifference::Auto,
    promotions: 2,
    cancels: true,
    gc: true,
    ..PLAIN
};

/// Requests that are applied late or never, and readers.
pub(crate) const ZOMBIES: Config = Config {
    name: "zombies",
    chunks: 1,
    ordinals: &[0],
    attaches: true,
    zombies: true,
    gc: true,
    damage: true,
    ..SMALL
};

/// Readers and deliveries in one request.
pub(crate) const READERS: Config = Config {
    name: "readers",
    ordinals: &[0, 1],
    policy: OnDifference::Auto,
    attaches: true,
    one_shots: true,
    damage: true,
    gc: true,
    ..PLAIN
};

/// A third runner.
pub(crate) const THREE_RUNNERS: Config = Config {
    name: "three runners",
    runners: 3,
    chunks: 1,
    ordinals: &[0, 1],
    epochs: 3,
    gc: true,
    policy: OnDifference::Auto,
    ..PLAIN
};

/// Three known attempts in any order.
pub(crate) const ATTEMPTS: Config = Config {
    name: "attempts",
    runners: 3,
    chunks: 1,
    ordinals: &[1, 2, 3],
    policy: OnDifference::Auto,
    epochs: 3,
    one_shots: true,
    ..PLAIN
};

/// Walked on every change.
pub(crate) const DEFAULT: &[Config] = &[
    SMALL,
    Config { name: "three chunks", chunks: 3, ..SMALL },
    OVERLAYS,
    AGAIN,
    AGAIN_OVERLAYS,
    Config { name: "again, gc", ordinals: &[0], gc: true, ..AGAIN },
    LEGS,
    CONTENTS,
    REVISE,
    PLACES,
    ROUND,
    PROMOTIONS,
    ZOMBIES,
    READERS,
    THREE_RUNNERS,
    ATTEMPTS,
];

/// The bounds of 3.6: two runners, two contents, three chunks, ordinals none, 1 and 2, a zombie, collection, cancel,
/// refusal; drops, duplicates and crashes without a bound.
const BOUNDS: Config = Config { name: "full: bounds of 3.6", chunks: 3, zombies: true, ..SMALL };

/// Walked besides with `TALLYONCE_MODEL=full`.
pub(crate) const FULL: &[Config] = &[
    BOUNDS,
    Config { name: "full: bounds of 3.6, overlays", policy: OnDifference::Auto, ..BOUNDS },
    Config { name: "full: bounds of 3.6, readers", zombies: false, attaches: true, damage: true, ..BOUNDS },
    Config {
        name: "full: three chunks, promotions",
        zombies: false,
        promotions: 1,
        policy: OnDifference::Auto,
        ..BOUNDS
    },
    Config {
        name: "full: three chunks, one request, delete",
        zombies: false,
        one_shots: true,
        deletes: true,
        policy: OnDifference::Auto,
        ..BOUNDS
    },
    Config { name: "full: three runners", ordinals: &[0, 1, 2], epochs: 4, ..THREE_RUNNERS },
    Config { name: "full: three runners, one request, promotion", one_shots: true, promotions: 1, ..THREE_RUNNERS },
    Config { name: "full: again, two chunks, all ordinals", chunks: 2, ..AGAIN },
    Config { name: "full: again, three chunks", chunks: 3, ordinals: &[0, 1], ..AGAIN },
    Config { name: "full: again, four epochs", epochs: 4, ..AGAIN },
    Config { name: "full: again, everything, two epochs", generations: 2, chunks: 1, ..SMALL },
    Config { name: "full: again, overlays, collection", ordinals: &[0, 1], gc: true, ..AGAIN_OVERLAYS },
    Config { name: "full: again, three chunks, all ordinals", chunks: 3, ..AGAIN },
    Config {
        name: "full: again, everything, overlays",
        generations: 2,
        chunks: 1,
        policy: OnDifference::Auto,
        ..SMALL
    },
    Config {
        name: "full: contents, collection, promotion",
        ordinals: &[0, 1, 2],
        gc: true,
        promotions: 1,
        one_shots: true,
        ..CONTENTS
    },
    Config { name: "full: round", ordinals: &[0, 1, 2], epochs: 3, gc: true, promotions: 2, ..ROUND },
    Config { name: "full: legs, four runners", runners: 4, ordinals: &[1, 2], one_shots: false, ..LEGS },
    Config { name: "full: legs, executed again", generations: 2, ordinals: &[0, 1], epochs: 3, ..LEGS },
];

/// From each state of these, every fair run.
pub(crate) const LIVENESS: &[Config] = &[
    Config { name: "small", ordinals: &[0, 1], cancels: false, ..SMALL },
    Config { name: "overlays", chunks: 1, ..OVERLAYS },
    Config { name: "legs", epochs: 3, gc: true, ..LEGS },
    Config { name: "again", ordinals: &[0], epochs: 2, gc: true, ..AGAIN },
    PLACES,
    CONTENTS,
    Config { name: "zombies", attaches: false, damage: false, ..ZOMBIES },
    Config { name: "three runners", epochs: 2, gc: false, ..THREE_RUNNERS },
];

/// The same with `TALLYONCE_MODEL=full`.
pub(crate) const LIVENESS_FULL: &[Config] =
    &[SMALL, THREE_RUNNERS, Config { name: "again, epochs", ordinals: &[0, 1], ..AGAIN_OVERLAYS }];
