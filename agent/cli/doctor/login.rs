//! Whether the end of the login session would end the supervisors.

use std::fs;
use std::path::{Path, PathBuf};

use super::Check;

/// Where systemd-logind's settings are, the weakest first.
const PLACES: [&str; 3] = ["usr/lib/systemd", "run/systemd", "etc/systemd"];

/// Asks systemd-logind's settings, where there is a systemd.
pub(super) fn session() -> Check {
    let name = "login session";
    if !Path::new("/run/systemd/system").is_dir() {
        return Check::ok(name, "no systemd-logind that would end processes at logout");
    }
    let user = std::env::var("USER").unwrap_or_default();
    judge(name, kills_at_logout(Path::new("/")), lingers(Path::new("/"), &user), &user)
}

fn judge(name: &'static str, kills: Option<bool>, lingers: bool, user: &str) -> Check {
    let next = format!("loginctl enable-linger {user}");
    match kills {
        Some(false) => Check::ok(name, "supervisors outlive it (KillUserProcesses=no)"),
        Some(true) | None if lingers => Check::ok(name, format!("supervisors outlive it ({user} lingers)")),
        Some(true) => Check::warn(name, "supervisors end with it (KillUserProcesses=yes)", next),
        None => Check::warn(name, "cannot tell whether supervisors end with it", next),
    }
}

fn lingers(root: &Path, user: &str) -> bool {
    !user.is_empty() && root.join("var/lib/systemd/linger").join(user).exists()
}

/// `KillUserProcesses` as set; else as the shipped file shows the default in a comment.
fn kills_at_logout(root: &Path) -> Option<bool> {
    let mut set = None;
    let mut shown = None;
    for file in files(root) {
        let Ok(text) = fs::read_to_string(file) else { continue };
        for line in text.lines().map(str::trim) {
            let commented = line.starts_with('#');
            let value = line.trim_start_matches('#').trim().strip_prefix("KillUserProcesses=").and_then(truth);
            match value {
                Some(value) if commented => shown = Some(value),
                Some(value) => set = Some(value),
                None => {}
            }
        }
    }
    set.or(shown)
}

/// The main files first, then the pieces in the order of their names.
fn files(root: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = PLACES.iter().map(|place| root.join(place).join("logind.conf")).collect();
    let mut pieces: Vec<PathBuf> = PLACES
        .iter()
        .filter_map(|place| fs::read_dir(root.join(place).join("logind.conf.d")).ok())
        .flat_map(|folder| folder.filter_map(Result::ok))
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "conf"))
        .collect();
    pieces.sort_by(|one, other| one.file_name().cmp(&other.file_name()));
    files.append(&mut pieces);
    files
}

fn truth(text: &str) -> Option<bool> {
    match text.trim() {
        "yes" | "true" | "on" | "1" => Some(true),
        "no" | "false" | "off" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Outcome;

    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn a_piece_goes_before_the_main_file_and_a_setting_before_a_shown_default() {
        let shown = root(&[("etc/systemd/logind.conf", "[Login]\n#KillUserProcesses=no\n")]);
        assert_eq!(kills_at_logout(shown.path()), Some(false));
        let set = root(&[
            ("etc/systemd/logind.conf", "[Login]\nKillUserProcesses=no\n"),
            ("usr/lib/systemd/logind.conf.d/10-x.conf", "[Login]\nKillUserProcesses=yes\n"),
            ("etc/systemd/logind.conf.d/20-x.conf.off", "[Login]\nKillUserProcesses=no\n"),
        ]);
        assert_eq!(kills_at_logout(set.path()), Some(true));
        assert_eq!(kills_at_logout(root(&[]).path()), None);
    }

    #[test]
    fn who_lingers_outlives_the_session() {
        let root = root(&[("var/lib/systemd/linger/ana", "")]);
        assert!(lingers(root.path(), "ana") && !lingers(root.path(), "eva") && !lingers(root.path(), ""));
        assert_eq!(judge("x", Some(true), true, "ana").outcome, Outcome::Ok);
        let warned = judge("x", Some(true), false, "ana");
        assert_eq!(warned.outcome, Outcome::Warn);
        assert_eq!(warned.next.as_deref(), Some("loginctl enable-linger ana"));
        assert_eq!(judge("x", Some(false), false, "ana").outcome, Outcome::Ok);
        assert_eq!(judge("x", None, false, "ana").outcome, Outcome::Warn);
    }
}
