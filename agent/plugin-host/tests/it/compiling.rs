//! Who compiles, how often, and what becomes of what a compiler gives.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use latido_plugin_host::{Compiler, Host, HostSettings, Kind, LoadError, PluginSpec};

use crate::support::builtin;

/// Compiles in this process, counts how often, and gives `instead` where there is one.
#[derive(Debug, Default)]
struct Counting {
    count: AtomicUsize,
    instead: Option<Result<Vec<u8>, String>>,
}

impl Compiler for Counting {
    fn compile(&self, component: &[u8]) -> Result<Vec<u8>, String> {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.instead.clone().unwrap_or_else(|| latido_plugin_host::compile(component))
    }
}

fn host(cache: &Path, compiler: &Arc<Counting>) -> Host {
    let compiler = Arc::clone(compiler);
    Host::new(HostSettings { cache: cache.to_owned(), compiler: Some(compiler), metered: false }).unwrap()
}

async fn load(host: &Host) -> Result<(), LoadError> {
    host.load_strategy(PluginSpec::new("script", Kind::Strategy, builtin("script"))).await.map(drop)
}

fn file_count(cache: &Path) -> usize {
    std::fs::read_dir(cache).unwrap().count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plugins_of_one_component_that_are_loaded_together_compile_it_once() {
    let folder = tempfile::tempdir().unwrap();
    let compiler = Arc::default();
    let host = Arc::new(host(&folder.path().join("cache"), &compiler));
    let loading: Vec<_> = (0..4)
        .map(|_| {
            let host = Arc::clone(&host);
            tokio::spawn(async move { load(&host).await })
        })
        .collect();
    for loading in loading {
        loading.await.unwrap().unwrap();
    }
    assert_eq!(compiler.count.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn what_a_compiler_cannot_do_is_said_in_its_words_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let compiler = Arc::new(Counting { instead: Some(Err("it is too much".to_owned())), ..Counting::default() });
    let error = load(&host(&cache, &compiler)).await.unwrap_err();
    assert_eq!(error.to_string(), "compile plugin `script`: it is too much");
    assert_eq!(file_count(&cache), 0);
}

#[tokio::test]
async fn rubbish_from_a_compiler_is_neither_run_nor_kept() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let compiler = Arc::new(Counting { instead: Some(Ok(b"rubbish".to_vec())), ..Counting::default() });
    let error = load(&host(&cache, &compiler)).await.unwrap_err();
    assert!(matches!(error, LoadError::Compile { .. }), "{error}");
    assert_eq!(file_count(&cache), 0);
}
