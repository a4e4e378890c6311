//! Collecting staging that nobody will end: a look every now and then, for as long as the server runs. Must not know what
//! may be collected: the domain says so, and the store does it in short steps between other writings.

use std::sync::Arc;

use store::Collected;

use crate::state::App;

/// Looks regularly until the server stops.
pub(crate) async fn regularly(app: Arc<App>) {
    loop {
        tokio::select! {
            () = look(&app) => {}
            () = app.drained() => return,
        }
        tokio::select! {
            () = tokio::time::sleep(app.limits.collect_every) => {}
            () = app.drained() => return,
        }
    }
}

/// Collects until there is no more for now, and says what was given up.
async fn look(app: &App) {
    let mut sum = Collected::default();
    loop {
        match app.door.collect().await {
            Ok(step) => {
                sum.abandoned += step.abandoned;
                sum.blocks += step.blocks;
                if !step.more {
                    break;
                }
            }
            Err(problem) => {
                tracing::warn!(code = problem.code.word(), "staging could not be collected; the next look tries again");
                break;
            }
        }
    }
    if sum != Collected::default() {
        tracing::info!(epochs = sum.abandoned, blocks = sum.blocks, "collected staging that nobody ended");
    }
}
