//! Components are compiled by a child, not by the agent: what a stranger's component makes a compiler do costs the child its
//! life and nobody else anything. Both ends are here: what the agent does, and what its child does.
//!
//! The child is this program once more. It reads the component from one file in memory, writes the compiled form to another,
//! and says the digest of what it wrote; without that word, or where the file has another digest, nothing is used.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use latido_plugin_host::Compiler;
use latido_process::Signal;
use latido_process::limited::{self, Done, LimitedError, Limits};
use rustix::fs::MemfdFlags;
use sha2::{Digest, Sha256};

/// The word that makes this program the child. It stands in no help: people have no use for it.
pub const WORD: &str = "compile-component";

/// How the child begins to say what it wrote.
const COMPILED: &str = "compiled ";

/// What a program says, or the system, when memory is refused.
const NO_MEMORY: [&str; 3] = ["memory allocation of ", "out of memory", "Cannot allocate memory"];

const LIMITS: Limits = Limits {
    // Python's component, the largest measured, takes a fifth of it.
    memory_max: 2 << 30,
    // Twice the time that may pass, for two processors; Python's takes 12 s.
    cpu_for: Duration::from_secs(120),
    // Four times the largest component; compiled code is about twice its size.
    file_max: 4 * latido_plugin_host::COMPONENT_MAX as u64,
    within: Duration::from_secs(60),
};

/// What the person who wrote the plugin can do.
const NEXT: &str = "build it smaller: in release mode, without debug data";

/// Has components compiled by another process.
#[derive(Clone, Debug)]
pub struct OwnProgram {
    program: PathBuf,
    limits: Limits,
}

impl OwnProgram {
    /// The program that runs, as it was when it was started, whatever lies at its path by now.
    pub fn running() -> Self {
        Self::at(Path::new("/proc/self/exe"), LIMITS)
    }

    /// A `latido` at this path, under these limits.
    pub fn at(program: &Path, limits: Limits) -> Self {
        Self { program: program.to_owned(), limits }
    }

    fn failure(&self, done: &Done) -> String {
        let Limits { memory_max, cpu_for, file_max, .. } = self.limits;
        let said = done.said.trim();
        let signal = done.signal.and_then(Signal::from_named_raw);
        if NO_MEMORY.iter().any(|words| said.contains(words)) {
            format!("the compiler needs more than {memory_max} bytes of memory for it; {NEXT}")
        } else if signal == Some(Signal::XCPU) {
            format!("the compiler needs more than {cpu_for:?} of computing time for it; {NEXT}")
        } else if signal == Some(Signal::XFSZ) {
            format!("its compiled form has more than {file_max} bytes; {NEXT}")
        } else if signal == Some(Signal::KILL) {
            format!("the compiler was killed, by the kernel for want of memory or by somebody; try again, or {NEXT}")
        } else if said.is_empty() {
            format!("the compiler ended without a word (signal {:?}); try again, or {NEXT}", done.signal)
        } else {
            said.to_owned()
        }
    }
}

impl Compiler for OwnProgram {
    fn compile(&self, component: &[u8]) -> Result<Vec<u8>, String> {
        let broken = |error: io::Error| format!("there is no room to compile it: {error}; free some memory");
        let input = in_memory("component").and_then(|file| written(file, component)).map_err(broken)?;
        let mut output = in_memory("compiled").map_err(broken)?;
        let child_writes = output.try_clone().map_err(broken)?;
        let done = match limited::run(&self.program, WORD, &self.limits, input, child_writes) {
            Ok(done) => done,
            Err(LimitedError::OutOfTime { within, .. }) => {
                return Err(format!("the compiler needs more than {within:?} for it; {NEXT}"));
            }
            Err(error) => return Err(format!("cannot {}", latido_protocol::chain(&error))),
        };
        let Some(told) = done.said.trim().strip_prefix(COMPILED) else { return Err(self.failure(&done)) };
        let mut compiled = Vec::new();
        output.rewind().and_then(|()| output.read_to_end(&mut compiled)).map_err(broken)?;
        if digest(&compiled) == told {
            Ok(compiled)
        } else {
            Err("what the compiler wrote is not what it told of; try again".to_owned())
        }
    }
}

/// The child: to be called first thing in `main`, with the words that follow [`WORD`].
pub fn child(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let (said, code) = match compile(words) {
        Ok(digest) => (format!("{COMPILED}{digest}"), ExitCode::SUCCESS),
        Err(why) => (why, ExitCode::FAILURE),
    };
    // Without its word the starter knows that something went wrong.
    let _unheard = io::stderr().write_all(said.as_bytes());
    code
}

fn compile(words: impl IntoIterator<Item = OsString>) -> Result<String, String> {
    let (mut input, output) = limited::enter(words).map_err(|error| format!("cannot begin to compile: {error}"))?;
    let mut component = Vec::new();
    input.read_to_end(&mut component).map_err(|error| format!("cannot read the component: {error}"))?;
    let compiled = latido_plugin_host::compile(&component)?;
    written(output, &compiled).map_err(|error| format!("cannot write its compiled form: {error}"))?;
    Ok(digest(&compiled))
}

fn in_memory(name: &str) -> io::Result<File> {
    Ok(File::from(rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC)?))
}

/// The file with these bytes, to be read from its beginning.
fn written(mut file: File, bytes: &[u8]) -> io::Result<File> {
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
