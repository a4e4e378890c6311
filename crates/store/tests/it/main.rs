//! The conformance suite on every engine, and what is particular to the file.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests stop at the first surprise")]

mod engines;
mod file;
mod ledgers;

use std::future::Future;
use std::sync::Arc;

use store::{MemoryStore, Store};

fn run<F: Future<Output = ()>>(test: impl FnOnce() -> F) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(8).enable_all().build().unwrap();
    runtime.block_on(test());
}

macro_rules! on_every_engine {
    ($($module:ident :: $test:ident,)*) => {
        mod sqlite {
            $(#[test]
            fn $test() {
                let folder = tempfile::tempdir().unwrap();
                let make = || store::open(&format!("sqlite:{}", folder.path().join("t.db").display())).unwrap();
                super::run(|| async { store::conformance::$module::$test(&make).await });
            })*
        }

        mod memory {
            use super::*;

            $(#[test]
            fn $test() {
                let make = || -> Arc<dyn Store> { Arc::new(MemoryStore::new()) };
                run(|| async { store::conformance::$module::$test(&make).await });
            })*
        }
    };
}

store::for_each_conformance_test!(on_every_engine);
