//! The private store of compiled components. Nothing else is ever run as compiled code.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use wasmtime::component::Component;

use crate::engine::Machine;
use crate::error::HostError;

/// Compiles components in the place of the host's own process.
pub trait Compiler: std::fmt::Debug + Send + Sync {
    /// Compiles a component as [`compile`](crate::compile) does. Blocks, and has a deadline of its own.
    ///
    /// # Errors
    ///
    /// In words: why it cannot be compiled, and what helps.
    fn compile(&self, component: &[u8]) -> Result<Vec<u8>, String>;
}

/// Compiled components, one file each: `<component>-<engine>-<file>.cwasm`, each part a digest.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
    compiler: Option<Arc<dyn Compiler>>,
    /// held while one compiles: a component that several plugins share is compiled once, and several large ones do not
    /// take up the machine together
    compiling: Arc<Mutex<()>>,
}

impl Cache {
    /// Uses a folder, made if it is not there. It has to be this user's own, and nobody else may reach into it: who can
    /// write here runs code in the agent.
    pub(crate) fn open(folder: &Path, compiler: Option<Arc<dyn Compiler>>) -> Result<Self, HostError> {
        let broken = |source| HostError::Cache { path: folder.to_owned(), source };
        match DirBuilder::new().recursive(true).mode(0o700).create(folder) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(broken(error)),
        }
        let foreign = |why| HostError::ForeignCache { path: folder.to_owned(), why };
        let metadata = fs::symlink_metadata(folder).map_err(broken)?;
        if !metadata.is_dir() {
            return Err(foreign("it is not a directory"));
        }
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            return Err(foreign("it belongs to another user"));
        }
        if metadata.mode() & 0o077 != 0 {
            return Err(foreign("others may look or write into it, its mode has to be 0700"));
        }
        Ok(Self { folder: folder.to_owned(), compiler, compiling: Arc::default() })
    }

    /// Returns the component, compiled before or now. Blocks for as long as compiling takes.
    pub(crate) fn component(&self, machine: &Machine, bytes: &[u8]) -> wasmtime::Result<Component> {
        let prefix = format!("{}-{}-", digest(bytes), machine.compatibility);
        if let Some(component) = self.known(machine, &prefix) {
            return Ok(component);
        }
        let _one_at_a_time = self.compiling.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(component) = self.known(machine, &prefix) {
            return Ok(component);
        }
        let compiled = match &self.compiler {
            None => machine.engine.precompile_component(bytes)?,
            Some(compiler) => compiler.compile(bytes).map_err(wasmtime::Error::msg)?,
        };
        #[expect(unsafe_code, reason = "the one way to run code that was compiled outside of the engine")]
        // SAFETY: the bytes come from `precompile_component` of this program: in this process, or in one that the compiler
        // started and whose answer it has compared with the digest that the process told.
        let component = unsafe { Component::deserialize(&machine.engine, &compiled) }?;
        if let Err(error) = self.keep(&prefix, &compiled) {
            tracing::warn!(path = %self.folder.display(), %error, "compiled plugin cannot be kept; it works all the same");
        }
        Ok(component)
    }

    /// What was compiled before. A file that cannot be used is removed.
    fn known(&self, machine: &Machine, prefix: &str) -> Option<Component> {
        let path = self.find(prefix)?;
        match self.reuse(machine, &path, prefix) {
            Ok(component) => Some(component),
            Err(why) => {
                tracing::warn!(path = %path.display(), why, "compiled plugin cannot be used; it is compiled again");
                drop(fs::remove_file(&path)); // what remains is found and refused in the same way
                None
            }
        }
    }

    fn find(&self, prefix: &str) -> Option<PathBuf> {
        let entries = fs::read_dir(&self.folder).ok()?;
        entries
            .filter_map(Result::ok)
            .find(|entry| {
                entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix) && name.ends_with(".cwasm"))
            })
            .map(|entry| entry.path())
    }

    /// Maps a file of the cache, once owner, kind and digest are those that it was written with.
    fn reuse(&self, machine: &Machine, path: &Path, prefix: &str) -> Result<Component, String> {
        let metadata = fs::symlink_metadata(path).map_err(|error| error.to_string())?;
        if !metadata.is_file() || metadata.uid() != rustix::process::geteuid().as_raw() || metadata.mode() & 0o077 != 0
        {
            return Err("not a private file of this user".to_owned());
        }
        // As it is read: a language's whole runtime is compiled to some 60 MB, which would all become memory.
        let mut found = blake3::Hasher::new();
        File::open(path).and_then(|file| found.update_reader(file).map(drop)).map_err(|error| error.to_string())?;
        let expected = format!("{prefix}{}.cwasm", found.finalize().to_hex());
        if path.file_name().is_none_or(|name| name != expected.as_str()) {
            return Err("its digest is not the one in its name".to_owned());
        }
        #[expect(unsafe_code, reason = "the one way to run code that was compiled before")]
        // SAFETY: the file lies in a folder of mode 0700 that belongs to this user (checked in `open`), belongs to this
        // user and is closed to others (checked above), was written whole by `keep` with what the compiler gave, and its
        // bytes have the digest in its name. It is replaced by renaming only, never written again.
        let component = unsafe { Component::deserialize_file(&machine.engine, path) };
        component.map_err(|error| format!("{error:#}"))
    }

    fn keep(&self, prefix: &str, compiled: &[u8]) -> io::Result<()> {
        let path = self.folder.join(format!("{prefix}{}.cwasm", digest(compiled)));
        let new = self.folder.join(format!("{prefix}{}.new", std::process::id()));
        match fs::remove_file(&new) {
            Ok(()) => {} // left behind by a process with this pid
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new).and_then(|mut file| {
            file.write_all(compiled)?;
            file.sync_all()
        });
        let kept = written.and_then(|()| fs::rename(&new, &path)).and_then(|()| File::open(&self.folder)?.sync_all());
        if kept.is_err() {
            drop(fs::remove_file(&new)); // the first error is the one to tell
        }
        kept
    }
}

/// BLAKE3: what is loaded is hashed whole each time, and this is several times as fast as the digests that people give.
fn digest(bytes: &[u8]) -> impl std::fmt::Display {
    blake3::hash(bytes).to_hex()
}
