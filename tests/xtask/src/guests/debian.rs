//! Debian's Rust compiler with the sources of the standard library: installed as root, or unpacked without.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::output;
use crate::{say, shell};

/// What has to be there. The compiler needs the standard library of the machine as well, for procedural macros.
pub(crate) const PACKAGES: [&str; 3] = ["rustc-web", "libstd-rust-web-dev", "rust-web-src"];

/// Where a compiler looks for the sources of its standard library, below its folder.
const SOURCES: &str = "usr/lib/rustlib/src/rust/library/std/src/lib.rs";

/// Packages whose presence on the machine must not keep them from being unpacked.
const OWN: [&str; 4] = ["rustc-web", "libstd-rust-web", "rust-web-src", "cargo-web"];

/// Packages unpacked into a folder of their own.
#[derive(Debug)]
pub(crate) struct Unpacked {
    folder: PathBuf,
}

impl Unpacked {
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn compiler(&self) -> PathBuf {
        self.folder.join("usr/bin/rustc")
    }

    pub(crate) fn libraries(&self) -> PathBuf {
        self.folder.join(format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH))
    }

    pub(crate) fn show(&self) -> String {
        self.folder.display().to_string()
    }
}

/// Tells whether compiler and sources are installed.
pub(crate) fn is_installed() -> bool {
    Path::new("/usr/bin/rustc").is_file() && Path::new("/").join(SOURCES).is_file()
}

/// Installs the packages; needs root.
pub(crate) fn install(root: &Path) -> Result<()> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "{} are not installed, and only root installs packages",
        PACKAGES.join(", ")
    );
    let mut list = shell::command("apt-get", root);
    list.env("DEBIAN_FRONTEND", "noninteractive").args(["update", "-q"]);
    let mut install = shell::command("apt-get", root);
    install
        .env("DEBIAN_FRONTEND", "noninteractive")
        .args(["install", "-y", "-q", "--no-install-recommends"])
        .args(PACKAGES);
    say::line(format_args!(
        "guests: about to install: `{}` and `{}` (a Rust compiler and its sources, about 120 MB of packages)",
        shell::show(&list),
        shell::show(&install)
    ));
    output(&mut list)?;
    output(&mut install)?;
    ensure!(is_installed(), "apt-get reported success, but compiler or sources are not there");
    Ok(())
}

/// Fetches the packages as any user and unpacks them into `target/debian-rust`, with apt's state kept there as well.
pub(crate) fn unpack(root: &Path) -> Result<Unpacked> {
    let folder = root.join("target/debian-rust");
    let unpacked = Unpacked { folder: folder.clone() };
    if folder.join("complete").is_file() {
        return Ok(unpacked);
    }
    say::line(format_args!(
        "guests: about to fetch {} with what they need (about 120 MB of packages) and unpack them into {}; nothing is installed",
        PACKAGES.join(", "),
        folder.display()
    ));
    let apt = Apt::prepare(root)?;
    output(apt.command(root).args(["update", "-q"]))?;
    let plan = output(
        apt.command(root).args(["install", "--print-uris", "-q", "-y", "--no-install-recommends"]).args(PACKAGES),
    )?;
    let files: Vec<&str> = plan.lines().filter_map(planned_package).collect();
    ensure!(!files.is_empty(), "apt-get has no package to fetch for {}", PACKAGES.join(", "));
    output(apt.command(&apt.packages).arg("download").args(&files))?;
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    for entry in fs::read_dir(&apt.packages).with_context(|| format!("cannot read {}", apt.packages.display()))? {
        let package = entry.with_context(|| format!("cannot read {}", apt.packages.display()))?.path();
        if package.extension().is_some_and(|extension| extension == "deb") {
            output(shell::command("dpkg-deb", root).arg("-x").arg(&package).arg(&folder))?;
        }
    }
    ensure!(folder.join(SOURCES).is_file(), "the packages do not hold {SOURCES}");
    output(shell::command(unpacked.compiler(), root).env("LD_LIBRARY_PATH", unpacked.libraries()).arg("-vV"))?;
    fs::write(folder.join("complete"), "").with_context(|| format!("cannot write into {}", folder.display()))?;
    fs::remove_dir_all(&apt.packages).with_context(|| format!("cannot remove {}", apt.packages.display()))?;
    Ok(unpacked)
}

/// apt-get with folders of its own, so that it needs no right beyond reading `/etc/apt` and `/var/lib/dpkg/status`.
struct Apt {
    state: PathBuf,
    status: PathBuf,
    packages: PathBuf,
}

impl Apt {
    fn prepare(root: &Path) -> Result<Self> {
        let state = root.join("target/debian-apt");
        let packages = state.join("packages");
        for folder in ["lists/partial", "cache/archives/partial", "packages"] {
            let folder = state.join(folder);
            fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        let installed = fs::read_to_string("/var/lib/dpkg/status").context("cannot read /var/lib/dpkg/status")?;
        let status = state.join("status");
        fs::write(&status, without_own(&installed)).with_context(|| format!("cannot write {}", status.display()))?;
        Ok(Self { state, status, packages })
    }

    fn command(&self, directory: &Path) -> Command {
        let mut command = shell::command("apt-get", directory);
        for (name, value) in [
            ("Dir::State", self.state.clone()),
            ("Dir::State::lists", self.state.join("lists")),
            ("Dir::State::status", self.status.clone()),
            ("Dir::Cache", self.state.join("cache")),
        ] {
            command.arg("-o").arg(format!("{name}={}", value.display()));
        }
        command.args(["-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User="]);
        command
    }
}

/// The name of the package that a line of `--print-uris` plans to fetch.
fn planned_package(line: &str) -> Option<&str> {
    let file = line.strip_prefix('\'')?.split_once("' ")?.1;
    file.split_once('_').map(|(name, _)| name)
}

/// dpkg's list of what is installed, without the packages that are to be unpacked.
fn without_own(status: &str) -> String {
    let kept = status.split("\n\n").filter(|stanza| {
        let name =
            stanza.trim_start().lines().next().and_then(|line| line.strip_prefix("Package: ")).unwrap_or_default();
        !OWN.iter().any(|own| name.starts_with(own))
    });
    kept.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_names_packages() {
        let line = "'http://deb.example/pool/main/r/rustc-web/rustc-web_1.96.0%2bdfsg1-1_amd64.deb' \
                    rustc-web_1.96.0+dfsg1-1_amd64.deb 4096 SHA256:00";
        assert_eq!(planned_package(line), Some("rustc-web"));
        assert_eq!(planned_package("Reading package lists..."), None);
    }

    #[test]
    fn an_installed_compiler_is_fetched_all_the_same() {
        let status =
            "Package: libc6\nStatus: install ok installed\n\nPackage: rustc-web\nVersion: 1\n\nPackage: zlib1g\n";
        assert_eq!(without_own(status), "Package: libc6\nStatus: install ok installed\n\nPackage: zlib1g\n");
    }
}
