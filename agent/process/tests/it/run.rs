use std::ffi::OsString;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use latido_process::run::{Command, Ending, RunError, ending, run};

use crate::support::wait_until;

fn run_in(directory: &Path, command: &[&str], environment: &[(&str, &str)]) -> Result<(Ending, String), RunError> {
    let folder = tempfile::tempdir().unwrap();
    let output = File::create(folder.path().join("output")).unwrap();
    let command: Vec<String> = command.iter().map(|&text| text.to_owned()).collect();
    let environment: Vec<(OsString, OsString)> =
        environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
    let job = Command {
        command: &command,
        directory,
        environment: &environment,
        output: output.as_fd(),
        keep: &[],
        umask: 0o027,
        setup: &latido_process::setup::Setup::default(),
    };
    let mut started = run(&job);
    // A test beside this one may have forked while the script was written: its child holds it open until its own exec.
    wait_until("the script is not being written", || {
        let is_busy = |error: &RunError| matches!(error, RunError::Execute { source, .. } if source.kind() == ErrorKind::ExecutableFileBusy);
        let busy = started.as_ref().is_err_and(is_busy);
        if busy {
            started = run(&job);
        }
        !busy
    });
    let child = started?;
    let mut end = None;
    wait_until("the child ends", || {
        end = ending(&child);
        end.is_some()
    });
    assert!(latido_process::start::collect(child.identity().pid));
    Ok((end.unwrap(), fs::read_to_string(folder.path().join("output")).unwrap()))
}

fn script(folder: &Path, name: &str, content: &[u8], mode: u32) -> String {
    let path = folder.join(name);
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_program_runs_in_its_own_session_with_its_own_environment() {
    let folder = tempfile::tempdir().unwrap();
    let script = "pwd; umask; echo \"$A\"; ps -o pid=,pgid=,sid= -p $$; kill -s INT $$; echo survived";
    let (end, output) =
        run_in(folder.path(), &["sh", "-c", script], &[("A", "b c"), ("PATH", "/usr/bin:/bin")]).unwrap();
    assert_eq!(end, Ending::Signaled(2), "an ignored signal of the starter is not handed on: {output}");
    let lines: Vec<_> = output.lines().collect();
    assert_eq!(fs::canonicalize(lines[0]).unwrap(), fs::canonicalize(folder.path()).unwrap());
    assert_eq!(lines[1..3], ["0027", "b c"]);
    let ids: Vec<_> = lines[3].split_whitespace().collect();
    assert!(ids.len() == 3 && ids[0] == ids[1] && ids[0] == ids[2], "{ids:?}");
}

#[test]
fn a_program_is_found_in_the_jobs_own_path_and_directory() {
    let folder = tempfile::tempdir().unwrap();
    script(folder.path(), "tool", b"#!/bin/sh\nexit 7\n", 0o755);
    let path = folder.path().to_str().unwrap();
    assert_eq!(run_in(Path::new("/"), &["tool"], &[("PATH", path)]).unwrap().0, Ending::Exited(7));
    assert_eq!(run_in(folder.path(), &["./tool"], &[]).unwrap().0, Ending::Exited(7));
    let error = run_in(folder.path(), &["tool"], &[("PATH", "/nowhere:/bin")]).unwrap_err();
    assert!(error.to_string().contains("/nowhere:/bin"), "{error}");
}

// Supervisor/supervisor#1321
#[test]
fn c185_each_failed_launch_has_its_own_message() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let cases = [
        (script(at, "a", b"#!/no/such/interpreter -x\n", 0o755), "interpreter /no/such/interpreter is missing"),
        (script(at, "b", b"#!/bin/sh\n", 0o644), "not executable"),
        (script(at, "c", b"#!/bin/sh\r\necho\r\n", 0o755), "carriage return"),
        // A program for a machine that nobody has: ELF, 64 bit, machine 0xfffe.
        (
            script(
                at,
                "d",
                &[b"\x7fELF\x02\x01\x01".as_slice(), &[0; 9], &[2, 0, 0xfe, 0xff], &[0; 44]].concat(),
                0o755,
            ),
            "exec format",
        ),
        (script(at, "e", b"", 0o755), "empty"),
        (script(at, "f", b"echo hello\n", 0o755), "exec format"),
        (at.to_str().unwrap().to_owned(), "is a directory"),
        (at.join("absent").to_str().unwrap().to_owned(), "no such file"),
        ("no-such-program-anywhere".to_owned(), "in PATH"),
        (String::new(), "empty command"),
        ("a\0b".to_owned(), "zero byte"),
    ];
    for (program, message) in cases {
        let error = run_in(at, &[&program], &[]).unwrap_err().to_string();
        assert!(error.contains(message), "{program}: {error}");
    }
    let long = "x".repeat(3 * 1024 * 1024);
    assert!(matches!(run_in(at, &["true", &long], &[]), Err(RunError::TooLong { .. })));
}

// bobmatnyc/trusty-tools#5661
#[test]
fn c188_a_missing_directory_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let error = run_in(&folder.path().join("gone"), &["true"], &[]).unwrap_err();
    assert!(matches!(error, RunError::NoDirectory { .. }), "{error}");
    fs::write(folder.path().join("file"), "").unwrap();
    let error = run_in(&folder.path().join("file"), &["true"], &[]).unwrap_err();
    assert!(matches!(error, RunError::NoDirectory { .. }), "{error}");
}
