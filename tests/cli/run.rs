//! `latido run`: what it prints, when it returns, how it ends.

use std::io::Write;
use std::process::Stdio;

use latido_protocol::{Class, OutcomeKind};

use crate::support::{World, wait_until};

#[test]
fn detach_returns_when_the_job_runs_and_prints_its_name() {
    let world = World::new();
    world.detach("sleeper", &[], "echo here; exec sleep 100");
    let start = world.start("sleeper", 1);
    assert!(start.process.is_some() && start.supervisor.is_some(), "{start:?}");
    assert_eq!((start.attempt, start.epoch, start.checkpoint.as_str()), (1, 1, ""));
    let status = world.status("sleeper");
    assert_eq!(status.pid, start.process.map(|process| process.pid));
    wait_until("the output", || world.latido(&["logs", "sleeper"]).stdout == "here\n");
}

#[test]
fn the_foreground_streams_the_output_and_ends_as_the_job_did() {
    let world = World::new();
    let ran = world.latido(&["run", "--name", "a", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]).ends_with(7);
    assert_eq!(ran.stdout, "out\nerr\n");
    world.latido(&["run", "--name", "b", "--", "sh", "-c", "kill -SEGV $$"]).ends_with(128 + 11);
    world.latido(&["run", "--name", "c", "--", "true"]).ends_with(0);
    assert_eq!(world.end("b", 1).outcome.class, Class::Failed);
}

/// Field case C163 (Blackwellboy/model-serving-minefield PR #28): exit status 137, signal 9, and a wrapper whose child was
/// killed are three endings, and none of them is a want of memory.
#[test]
fn the_foreground_ends_as_the_job_did_also_where_nobody_reads_on() {
    let world = World::new();
    let script = format!(
        "{{ {} run --name a --state-dir {} -- sh -c 'seq 1 100000; exit 7'; echo $? >code; }} | head -n 1",
        env!("CARGO_BIN_EXE_latido"),
        world.state().path().display()
    );
    let ran = world.command("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "1\n");
    let code = std::fs::read_to_string(world.home().join("code")).unwrap();
    assert_eq!(code, "7\n", "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn c163_exit_status_137_is_not_a_signal() {
    let world = World::new();
    let cases = [
        ("status", "exit 137", OutcomeKind::Exited, Some(137), None, Class::Failed),
        ("signal", "kill -9 $$", OutcomeKind::Signaled, None, Some(9), Class::Lost),
        ("wrapper", "sh -c 'kill -9 $$'; exit $?", OutcomeKind::Exited, Some(137), None, Class::Failed),
    ];
    for (name, script, kind, code, signal, class) in cases {
        world.latido(&["run", "--name", name, "--", "sh", "-c", script]).ends_with(137);
        let outcome = world.end(name, 1).outcome;
        assert_eq!((outcome.kind, outcome.code, outcome.signal, outcome.class), (kind, code, signal, class), "{name}");
        assert!(!outcome.detail.contains("memory"), "{outcome:?}");
    }
}

#[test]
fn a_name_is_made_from_the_program_and_numbered_when_it_is_in_use() {
    let world = World::new();
    for name in ["sleep", "sleep-2", "sleep-3"] {
        let ran = world.latido(&["run", "--detach", "--", "/bin/sleep", "100"]).ends_with(0);
        assert_eq!(ran.stdout, format!("{name}\n"));
    }
    world.latido(&["stop", "sleep-2"]).ends_with(0);
    world.latido(&["remove", "sleep-2"]).ends_with(0);
    let plan = world.latido(&["run", "--dry-run", "--json", "--", "sleep", "1"]).ends_with(0);
    assert!(plan.stdout.contains("\"name\": \"sleep-2\""), "{plan:?}");
    assert!(!world.state().job(&"sleep-2".parse().unwrap()).path().exists(), "a dry run made something");
}

/// Field case C167 (anthropics/claude-code#79175): stdin is empty, so that `cat` ends at once and a question fails.
#[test]
fn c167_the_job_reads_an_empty_stdin() {
    let world = World::new();
    let ran = world.latido(&["run", "--name", "a", "--", "sh", "-c", "cat; read answer; echo \"status $?\""]);
    assert_eq!(ran.ends_with(0).stdout, "status 1\n");
}

/// Field case C168 (frankbria/ralph-claude-code PR #170): the job has a session of its own and no controlling terminal.
#[test]
fn c168_the_job_has_no_controlling_terminal() {
    let world = World::new();
    let script = "(: </dev/tty) 2>/dev/null && echo terminal || echo none";
    assert_eq!(world.latido(&["run", "--name", "a", "--", "sh", "-c", script]).ends_with(0).stdout, "none\n");
}

/// Field case C171 (cloudflare/sandbox-sdk PR #141): a script that is itself read from a pipe goes on after `latido run`.
#[test]
fn c171_the_callers_stdin_is_never_read() {
    let world = World::new();
    let list = "one\ntwo\nthree\n";
    let script = format!(
        "while read x; do {} run --state-dir {} --detach --name $x -- cat || exit 1; done; echo all",
        env!("CARGO_BIN_EXE_latido"),
        world.state().path().display()
    );
    let mut shell =
        world.command("sh").args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    shell.stdin.take().unwrap().write_all(list.as_bytes()).unwrap();
    assert_eq!(world.finish(shell).ends_with(0).stdout, "one\ntwo\nthree\nall\n");
}

/// Field case C164 (python/cpython#76116): a grandchild holds the output open after the leader has ended.
#[test]
fn c164_a_grandchild_that_holds_the_output_does_not_hold_the_ending() {
    let world = World::new();
    let ran = world.latido(&["run", "--name", "a", "--", "sh", "-c", "sleep 300 & echo started"]).ends_with(0);
    assert_eq!(ran.stdout, "started\n");
    assert_eq!(world.end("a", 1).outcome.class, Class::Completed);
    assert_eq!(world.living("a", 1), []);
}

/// Field case C165 (stemdeckapp/stemdeck#583): a limit of time holds although a grandchild holds the output.
#[test]
fn c165_a_limit_of_time_ends_the_whole_tree() {
    let world = World::new();
    let ran = world.latido(&["run", "--run-for", "1s", "--name", "a", "--", "sh", "-c", "sleep 300; echo late"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.stdout, "");
    assert_eq!(world.end("a", 1).outcome.class, Class::Limit);
    assert_eq!(world.living("a", 1), []);
}

#[test]
fn ctrl_c_stops_the_job_and_a_second_one_kills_it() {
    let world = World::new();
    let script = "trap '' TERM; echo up; while :; do sleep 0.1; done";
    let child = world.spawn(&["run", "--name", "a", "--", "sh", "-c", script]);
    wait_until("the job", || world.latido(&["logs", "a"]).stdout == "up\n");
    world.kill(child.id(), "INT");
    wait_until("the stop", || world.status("a").phase == latido_protocol::status::Phase::Draining);
    world.kill(child.id(), "INT");
    world.finish(child).ends_with(128 + 9);
    assert_eq!(world.end("a", 1).outcome.class, Class::Stopped);

    let child = world.spawn(&["run", "--name", "b", "--", "sleep", "100"]);
    wait_until("the job", || world.attempt("b", 1).status().exists());
    world.kill(child.id(), "INT");
    world.finish(child).ends_with(128 + 15);
    assert_eq!(world.end("b", 1).outcome.class, Class::Stopped);
}

/// Field case C205 (Unitech/pm2#5190): the caller's environment reaches the job and never the disk or any output.
#[test]
fn c205_the_callers_secrets_are_never_written_down() {
    let world = World::new();
    let script = "test \"$SECRET_TOKEN\" = abc123xyz && sleep 100";
    let ran = world
        .latido_command(&["run", "--detach", "--name", "a", "--", "sh", "-c", script])
        .env("SECRET_TOKEN", "abc123xyz")
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
    // The script itself holds the text; what else the state directory holds must not.
    let script_holds = ["job.json", "start.json"];
    for entry in walkdir::WalkDir::new(world.state().path()) {
        let entry = entry.unwrap();
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type().is_file() {
            let text = String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap()).into_owned();
            let expected = usize::from(script_holds.contains(&name.as_str()));
            assert_eq!(text.matches("abc123xyz").count(), expected, "{}", entry.path().display());
            assert!(!text.contains("SECRET_TOKEN\":"), "{}", entry.path().display());
        }
    }
    for words in [&["status", "--json"][..], &["why", "a"], &["ledger"], &["orphans"]] {
        let said = world.latido(words);
        assert!(!said.stdout.contains("abc123xyz") && !said.stderr.contains("abc123xyz"), "{said:?}");
    }
}

/// Field case C206 (Extra-Chill/homeboy#13522): no output shows a job's arguments.
#[test]
fn c206_arguments_are_not_part_of_what_is_shown() {
    let world = World::new();
    world
        .latido(&["run", "--detach", "--name", "a", "--", "sh", "-c", "sleep 100", "--token", "abc123xyz"])
        .ends_with(0);
    world.latido(&["stop", "a"]).ends_with(0);
    let words =
        [&["status", "--json"][..], &["status"], &["why", "a"], &["ledger"], &["run", "--name", "a", "--", "true"]];
    for words in words {
        let said = world.latido(words);
        assert!(!said.stdout.contains("abc123xyz") && !said.stderr.contains("abc123xyz"), "{said:?}");
    }
}

#[test]
fn given_variables_reach_every_attempt() {
    let world = World::new();
    world.detach("a", &["--env", "COLOUR=red=blue", "--cwd", "/"], "echo $COLOUR $PWD $LATIDO_JOB $LATIDO_ATTEMPT");
    world.end("a", 1);
    world.latido(&["resume", "a"]).ends_with(0);
    world.end("a", 2);
    assert_eq!(world.latido(&["logs", "a", "--attempt", "1"]).stdout, "red=blue / a 1\n");
    assert_eq!(world.latido(&["logs", "a"]).stdout, "red=blue / a 2\n");
}

#[test]
fn every_duration_that_is_none_is_refused_in_three_parts() {
    let world = World::new();
    let options =
        ["--ttl", "--interval", "--start-within", "--linger", "--hung-after", "--run-for", "--first-output-within"];
    let rubbish =
        ["inf", "NaN", "-1s", "-", "1e9h", "5", "", " ", "s", "1s-", "\u{0663}s", "99999999999999999999h", "1.5"];
    for option in options {
        for text in rubbish {
            let ran = world.latido(&["run", option, text, "--dry-run", "--", "true"]).ends_with(2);
            let parts = ["error: ", "  cause: ", "  next:  "];
            let has = |part: &str| {
                ran.stderr.lines().any(|line| line.strip_prefix(part).is_some_and(|rest| !rest.is_empty()))
            };
            assert!(parts.into_iter().all(has), "{option} {text:?}: {ran:?}");
            assert!(ran.stderr.contains(option), "{option} {text:?}: {ran:?}");
        }
    }
    for words in
        [&["stop", "a", "--grace"][..], &["wait", "a", "--for"], &["pause", "a", "--for"], &["run", "--backoff"]]
    {
        for text in rubbish {
            let ran = world.latido(&[words, &[text]].concat()).ends_with(2);
            assert!(
                ran.stderr.contains("  cause: ") && ran.stderr.contains("  next:  "),
                "{words:?} {text:?}: {ran:?}"
            );
        }
    }
}
