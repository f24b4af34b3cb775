//! The two ways to a Rust compiler for WebAssembly: rustup's own standard library, or Debian's compiler and sources.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::debian::{self, Unpacked};
use super::output;
use crate::{say, shell};

/// What guests are built for: no WASI is needed, since the plugins' interfaces are all that is imported.
const TARGET: &str = "wasm32-unknown-unknown";

/// Chooses the way: `rustup`, `debian` (installed, else installed now as root), `debian-unpacked`; not set, the first
/// that works.
pub(crate) const CHOICE: &str = "LATIDO_GUEST_TOOLCHAIN";

/// A compiler that can build guests.
#[derive(Debug)]
pub(crate) struct Toolchain {
    way: Way,
    /// The linker, where it is not the compiler's own.
    linker: Option<PathBuf>,
}

#[derive(Debug)]
enum Way {
    /// The compiler that builds everything else, with the target's standard library.
    Rustup,
    /// Debian's compiler, installed; the standard library is built from its sources.
    Debian,
    /// The same, unpacked into the target folder.
    Unpacked(Unpacked),
}

impl Toolchain {
    /// Finds a toolchain, and gets one where there is none. Says beforehand what it installs.
    ///
    /// # Errors
    ///
    /// Tells what was tried and what to install.
    pub(crate) fn find(root: &Path) -> Result<Self> {
        let choice = env::var(CHOICE).unwrap_or_default();
        let found = match choice.as_str() {
            "" => Self::any(root)?,
            "rustup" => rustup(root).context("the way `rustup` does not work")?,
            "debian" => debian(root).context("the way `debian` does not work")?,
            "debian-unpacked" => unpacked(root).context("the way `debian-unpacked` does not work")?,
            other => bail!("{CHOICE} is `{other}`; known: rustup, debian, debian-unpacked"),
        };
        say::line(format_args!("guests: building {}", found.way()));
        Ok(found)
    }

    fn any(root: &Path) -> Result<Self> {
        let mut tried = Vec::new();
        for (name, way) in
            [("rustup", rustup as fn(&Path) -> Result<Self>), ("debian", debian), ("debian-unpacked", unpacked)]
        {
            match way(root) {
                Ok(found) => return Ok(found),
                Err(error) => {
                    say::line(format_args!("guests: the way `{name}` does not work: {error:#}"));
                    tried.push(format!("{name}: {error:#}"));
                }
            }
        }
        bail!(
            "cannot build the plugins: no Rust compiler for {TARGET}\n  cause: {}\n  next:  run `rustup target add {TARGET}` \
             where rustup can fetch it, or, on Debian, `apt-get install {} lld` as root; then run this again",
            tried.join("\n         "),
            debian::PACKAGES.join(" ")
        )
    }

    /// The way that was taken, in words.
    pub(crate) fn way(&self) -> String {
        match &self.way {
            Way::Rustup => format!("with rustup's standard library for {TARGET}"),
            Way::Debian => "with Debian's rustc-web, standard library from rust-web-src".to_owned(),
            Way::Unpacked(unpacked) => {
                format!("with Debian's rustc-web unpacked in {}, standard library from rust-web-src", unpacked.show())
            }
        }
    }

    /// Builds a workspace's release artifacts into [`Self::output`].
    ///
    /// # Errors
    ///
    /// Names the workspace where the build fails.
    pub(crate) fn build(&self, root: &Path, workspace: &Path) -> Result<()> {
        let mut command = self.cargo(root, workspace)?;
        command.arg("--locked");
        shell::run(&mut command).with_context(|| format!("cannot build {} for {TARGET}", workspace.display()))
    }

    /// Makes a call of `cargo build --release` for the target, in this workspace.
    ///
    /// # Errors
    ///
    /// Fails where cargo's home cannot be named.
    pub(crate) fn cargo(&self, root: &Path, workspace: &Path) -> Result<Command> {
        let mut command = shell::cargo(root, &["build", "--release", "--quiet", "--target", TARGET]);
        command.current_dir(workspace).arg("--manifest-path").arg(workspace.join("Cargo.toml"));
        for name in ["RUSTFLAGS", "RUSTC", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "CARGO_BUILD_TARGET"] {
            command.env_remove(name); // they are meant for the machine's own builds
        }
        command.env("CARGO_TARGET_DIR", self.target_folder(root));
        let mut flags = self.remapped(root)?;
        if let Some(linker) = &self.linker {
            flags.push("-Clinker-flavor=wasm-ld".into());
            let mut flag = OsString::from("-Clinker=");
            flag.push(linker);
            flags.push(flag);
        }
        command.env("CARGO_ENCODED_RUSTFLAGS", flags.join(&OsString::from("\x1f")));
        match &self.way {
            Way::Rustup => {}
            Way::Debian => from_sources(&mut command, Path::new("/usr/bin/rustc")),
            Way::Unpacked(unpacked) => {
                from_sources(&mut command, &unpacked.compiler());
                command.env("LD_LIBRARY_PATH", unpacked.libraries());
            }
        }
        Ok(command)
    }

    /// Where the built modules lie.
    pub(crate) fn output(&self, root: &Path) -> PathBuf {
        self.target_folder(root).join(TARGET).join("release")
    }

    fn target_folder(&self, root: &Path) -> PathBuf {
        let name = match &self.way {
            Way::Rustup => "rustup",
            Way::Debian | Way::Unpacked(_) => "debian",
        };
        root.join("target/guests").join(name)
    }

    /// Keeps this machine's paths out of the modules: panic messages carry them.
    fn remapped(&self, root: &Path) -> Result<Vec<OsString>> {
        let home = match env::var_os("CARGO_HOME") {
            Some(home) => PathBuf::from(home),
            None => PathBuf::from(env::var_os("HOME").context("neither CARGO_HOME nor HOME is set")?).join(".cargo"),
        };
        let mut pairs = vec![(root.to_owned(), "/latido"), (home, "/cargo")];
        if let Way::Unpacked(unpacked) = &self.way {
            pairs.push((unpacked.folder().to_owned(), "/debian"));
        }
        Ok(pairs
            .into_iter()
            .map(|(from, to)| {
                let mut flag = OsString::from("--remap-path-prefix=");
                flag.push(from);
                flag.push("=");
                flag.push(to);
                flag
            })
            .collect())
    }
}

/// Lets a stable compiler build the standard library from its sources.
fn from_sources(command: &mut Command, compiler: &Path) {
    command.args(["-Z", "build-std=std,panic_abort"]).env("RUSTC_BOOTSTRAP", "1").env("RUSTC", compiler);
}

fn rustup(root: &Path) -> Result<Toolchain> {
    let sysroot = sysroot(root)?;
    if !sysroot.join("lib/rustlib").join(TARGET).is_dir() {
        let name = rustup_name(&sysroot)
            .with_context(|| format!("the compiler in {} does not come from rustup", sysroot.display()))?;
        say::line(format_args!(
            "guests: about to install: `rustup target add {TARGET}` (the standard library for WebAssembly, about 20 MB, \
             into {})",
            sysroot.display()
        ));
        let mut command = shell::command("rustup", root);
        command.args(["target", "add", TARGET, "--toolchain"]).arg(name);
        output(&mut command)?;
        ensure!(
            sysroot.join("lib/rustlib").join(TARGET).is_dir(),
            "rustup reported success, but {TARGET} is not there"
        );
    }
    Ok(Toolchain { way: Way::Rustup, linker: None })
}

/// The name by which rustup knows a compiler; nothing where it is not rustup's.
fn rustup_name(sysroot: &Path) -> Option<&std::ffi::OsStr> {
    sysroot.parent().filter(|folder| folder.ends_with("toolchains")).and(sysroot.file_name())
}

fn debian(root: &Path) -> Result<Toolchain> {
    if !debian::is_installed() {
        debian::install(root)?;
    }
    Ok(Toolchain { way: Way::Debian, linker: Some(linker(root)?) })
}

fn unpacked(root: &Path) -> Result<Toolchain> {
    let linker = Some(linker(root)?);
    Ok(Toolchain { way: Way::Unpacked(debian::unpack(root)?), linker })
}

/// The linker for WebAssembly: Debian's compiler brings none, the toolchain that builds xtask does.
fn linker(root: &Path) -> Result<PathBuf> {
    let sysroot = sysroot(root)?;
    let host = env::consts::ARCH;
    let own = sysroot.join(format!("lib/rustlib/{host}-unknown-linux-gnu/bin/rust-lld"));
    if own.is_file() {
        return Ok(own);
    }
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .flat_map(|folder| ["wasm-ld", "wasm-ld-22", "wasm-ld-19"].map(|name| folder.join(name)))
        .find(|program| program.is_file())
        .with_context(|| {
            format!("no linker for WebAssembly: neither {} nor `wasm-ld` in PATH (Debian: `lld`)", own.display())
        })
}

/// Where the compiler that builds everything else lies.
fn sysroot(root: &Path) -> Result<PathBuf> {
    let compiler = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let printed = output(shell::command(compiler, root).args(["--print", "sysroot"]))?;
    Ok(PathBuf::from(printed.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rustups_own_compiler_is_given_a_target() {
        let own = Path::new("/opt/rustup/toolchains/stable-x86_64-unknown-linux-gnu");
        assert_eq!(rustup_name(own).unwrap(), "stable-x86_64-unknown-linux-gnu");
        assert_eq!(rustup_name(Path::new("/usr")), None);
    }
}
