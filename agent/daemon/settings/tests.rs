use std::path::Path;

use latido_protocol::CountLimit;

use super::*;

fn parse(text: &str) -> Result<Settings, SettingsError> {
    Settings::parse(Path::new("/etc/latido.toml"), text)
}

fn causes(text: &str) -> String {
    parse(text).expect_err("it was accepted").causes().join("\n")
}

#[test]
fn an_empty_config_is_the_defaults() {
    let settings = parse("").unwrap();
    assert_eq!(settings, Settings { file: Some("/etc/latido.toml".into()), ..Settings::default() });
}

#[test]
fn what_is_shown_reads_back_as_the_same() {
    let text = r#"
        agent.state_dir = "/var/lib/latido"
        [policy.catalogue]
        ttl = "12m"
        hung_after = "15m"
        resume = { on = ["lost", "hung"], backoff = "1s..10s" }
        [[sink]]
        name = "history"
        source = "builtin:sqlite"
        entries = ["transition", "beat"]
        grant.sql.main = "history.db"
        settings = { keep = 3, deep = { list = [1, 2] } }
        [[strategy]]
        name = "script"
        source = "own.wasm"
        grant.workspace.read_max = "1MiB"
        [job.catalogue]
        command = ["python3", "catalogue.py"]
        directory = "work"
        environment = { LANG = "C" }
        policy = "catalogue"
        run_for = "2h"
        resume = { max_attempts = 7 }
        start = "manual"
    "#;
    let settings = parse(text).unwrap();
    assert_eq!(parse(&settings.to_toml().unwrap()).unwrap(), settings);
    let job = &settings.jobs[&"catalogue".parse().unwrap()];
    assert_eq!(job.directory.as_deref(), Some(Path::new("/etc/work")));
    let decided = settings.configured_job_settings(job).unwrap();
    assert_eq!(decided.resume.max_attempts, CountLimit::At(7));
    assert_eq!(decided.interval.to_string(), "30s");
    assert_eq!(settings.strategies[0].source, PluginSource::File("/etc/own.wasm".into()));
}

#[test]
fn a_typo_is_told_with_line_column_and_nearest_key() {
    let told = causes("[policy.default]\nttl = \"3m\"\n  intervall = \"5s\"\n");
    assert_eq!(told, "/etc/latido.toml:3:3: `policy.default.intervall`: no such key; did you mean `interval`?");
}

#[test]
fn every_fault_is_told_at_once_in_the_order_of_the_file() {
    let told = causes(
        "[agent]\nhistory_every = 300\npresense_every = \"60s\"\n[policy.slow]\nttl = \"ten\"\nbeats = \"ouwn\"\n\
         resume = { on = [\"lost\", \"lots\"] }\n[[sink]]\nname = \"x\"\nsource = \"builtin:sqlite\"\ngrants = 1\n\
         [job.a]\ncomand = [\"true\"]\n",
    );
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.len(), 8, "{told}");
    for (line, part) in lines.iter().zip([
        ":2:1: `agent.history_every`: \"300\" has no unit; write 300s, 300m or 300h",
        ":3:1: `agent.presense_every`: no such key; did you mean `presence_every`?",
        ":5:1: `policy.slow.ttl`: \"ten\" is not a duration",
        ":6:1: `policy.slow.beats`: \"ouwn\" is none of auto, own, presence; did you mean \"own\"?",
        ":7:",
        ":11:1: `sink.0.grants`: no such key; did you mean `grant`?",
        ":12:",
        ":13:1: `job.a.comand`: no such key; did you mean `command`?",
    ]) {
        assert!(line.contains(part), "{line}\n{part}");
    }
}

#[test]
fn a_syntax_error_has_its_place() {
    assert!(causes("[policy\nx = 1\n").starts_with("/etc/latido.toml:1:8"), "{}", causes("[policy\nx = 1\n"));
    assert!(causes("a = 1\na = 2\n").contains(":2:1"), "{}", causes("a = 1\na = 2\n"));
}

/// Field case C026 (apache/airflow#16573): interval and health limit were the same, and healthy work was killed.
#[test]
fn c026_interval_and_ttl_are_compared_and_both_are_named() {
    for (interval, ttl) in [("30s", "30s"), ("60s", "45s")] {
        let told = causes(&format!("[policy.a]\ninterval = \"{interval}\"\nttl = \"{ttl}\"\n"));
        assert!(told.contains(":3:1: `policy.a.ttl`"), "{told}");
        let span = |text: &str| text.parse::<latido_protocol::Span>().unwrap().to_string();
        assert!(told.contains(&span(interval)) && told.contains(&span(ttl)), "{told}");
    }
    let warned = parse("[policy.a]\ninterval = \"30s\"\nttl = \"45s\"\n").unwrap().warnings;
    assert_eq!(warned.len(), 1);
    assert!(warned[0].to_string().contains("ttl 45s is less than 3 times interval 30s"), "{}", warned[0]);
    assert!(Settings::default().warnings.is_empty());
}

/// Field case C049 (celery/celery#5935): work that ran longer than a visibility timeout was handed out again.
/// Field case C050 (Koed00/django-q#183): a retry delay shorter than the job's limit started a second copy.
///
/// No setting can bring that about: a delay counts from the proven end of the attempt before, so a short one beside a
/// long job is sound, and a timer that hands running work out again does not exist.
#[test]
fn c050_no_setting_starts_a_running_job_again() {
    let sound =
        "[policy.a]\nttl = \"5s\"\nrun_for = \"60s\"\nresume = { on = [\"lost\", \"stale\"], backoff = \"5s..5s\" }\n";
    parse(sound).unwrap();
    for key in ["retry_after", "visibility_timeout", "timeout", "resume.after"] {
        let told = causes(&format!("[policy.a]\n{key} = \"5s\"\n"));
        assert!(told.contains("no such key"), "{told}");
    }
    let told = causes("[policy.a]\nresume = { backoff = \"5m..5s\" }\n");
    assert!(told.contains("longer than the longest"), "{told}");
}

/// Field case C053 (riverqueue/river#1287): "no timeout" was -1, and was compared as a number.
#[test]
fn c053_only_none_is_no_limit() {
    for bad in ["-1", "0", "\"-1\"", "\"0s\"", "\"infinite\"", "\"unlimited\"", "inf", "false", "\"\""] {
        let told = causes(&format!("[policy.default]\nrun_for = {bad}\n"));
        assert!(told.contains(":2:1: `policy.default.run_for`") && told.contains("`none`"), "{bad}: {told}");
    }
    let settings = parse("[policy.default]\nrun_for = \"5s\"\n[policy.long]\nrun_for = \"none\"\n").unwrap();
    let shown = settings.to_toml().unwrap();
    let long = shown.split("[policy.long]").nth(1).unwrap();
    assert!(long.contains("run_for = \"none\""), "{shown}");
}

#[test]
fn a_job_names_a_policy_and_a_strategy_that_exist() {
    let told =
        causes("[policy.catalogue]\n[job.a]\ncommand = [\"true\"]\npolicy = \"catalog\"\nstrategy = \"scritp\"\n");
    assert!(told.contains(":4:1: `job.a.policy`: there is no policy `catalog`; did you mean `catalogue`?"), "{told}");
    assert!(told.contains(":5:1: `job.a.strategy`: there is no strategy `scritp`; did you mean `script`?"), "{told}");
}

#[test]
fn names_and_values_are_checked() {
    for (text, part) in [
        ("[job.\"../x\"]\ncommand = [\"true\"]\n", "begins with"),
        ("[job.a]\ncommand = []\n", "names no program"),
        ("[job.a]\n", "missing field `command`"),
        ("[job.a]\ncommand = [\"true\"]\nenvironment = { LATIDO_EPOCH = \"1\" }\n", "set by latido"),
        ("[job.a]\ncommand = [\"true\"]\nresume = { on = [\"hung\"] }\n", "never hung"),
        ("[policy.a]\nresume = { max_attempts = 0 }\n", "max_attempts"),
        ("[policy.\"A B\"]\n", "begins with"),
        ("[[rule]]\nname = \"x\"\nsource = \"builtin:livenes\"\n", "did you mean `builtin:liveness`?"),
        ("[[rule]]\nname = \"x\"\nsource = \"builtin:sqlite\"\n", "built in are `builtin:liveness`"),
        ("[[rule]]\nname = \"history\"\nsource = \"builtin:liveness\"\n", "the name of a sink already"),
        ("[[sink]]\nname = \"x\"\nsource = \"builtin:sqlite\"\nentries = [\"alrt\"]\n", "did you mean \"alert\"?"),
        (
            "[[strategy]]\nname = \"x\"\nsource = \"x.wasm\"\ngrant.workspace.read_max = \"1GiB\"\n",
            "`strategy.0.grant.workspace.read_max`: write 1B to 16MiB",
        ),
        ("[agent]\nstate_dir = \"here\"\n", "not an absolute path"),
        ("[agent.log]\nsize_max = \"1B\"\n", "64KiB"),
        ("[agent.log]\nsize_max = 16777216\n", "no unit"),
        ("[policy.a]\nttl = \"0s\"\n", "0s"),
        ("policy = 1\n", "invalid type"),
    ] {
        let told = causes(text);
        assert!(told.contains(part), "{text}\n{told}");
        assert!(told.starts_with("/etc/latido.toml:"), "{told}");
    }
}

#[test]
fn a_policy_begins_with_the_default_policy() {
    let settings = parse("[policy.default]\ngrace = \"3s\"\nbeats = \"own\"\n[policy.a]\nttl = \"6s\"\n").unwrap();
    let policy = &settings.policies["a"];
    assert_eq!((policy.grace.to_string(), policy.interval.to_string()), ("3s".into(), "2s".into()));
    assert_eq!(policy.beats, latido_protocol::files::Beats::Own);
}

#[test]
fn no_plugin_at_all_can_be_asked_for() {
    let settings = parse("sink = []\nrule = []\n").unwrap();
    assert!(settings.sinks.is_empty() && settings.rules.is_empty());
    assert_eq!(settings.strategies, Settings::default().strategies);
    assert_eq!(parse(&settings.to_toml().unwrap()).unwrap(), settings);
}

#[test]
fn checks_and_processes_are_read_and_shown_as_the_same() {
    let text = r#"
        [check.backup]
        cron = "0 3 * * *"
        zone = "America/Santiago"
        grace = "30m"
        run_for = "2h"
        [check.queue]
        every = "1h"
        [process.legacy]
        pid_file = "run/legacy.pid"
        [process.proxy]
        name = "haproxy"
        start_within = "5m"
    "#;
    let settings = parse(text).unwrap();
    assert_eq!(parse(&settings.to_toml().unwrap()).unwrap(), settings);
    let backup = &settings.checks[&"backup".parse().unwrap()];
    assert_eq!(backup.run_for, "2h".parse().unwrap());
    assert!(matches!(&backup.timing, ConfiguredTiming::Cron { schedule, .. }
        if schedule.definition() == "0 3 * * * America/Santiago"));
    let legacy = &settings.processes[&"legacy".parse().unwrap()];
    assert_eq!(legacy.named_by, NamedBy::PidFile("/etc/run/legacy.pid".into()));
}

#[test]
fn what_is_wrong_with_a_check_is_told_with_its_place_and_what_was_meant() {
    for (text, told) in [
        (
            "[check.a]\ncron = \"0 25 * * *\"\n",
            ":2:1: `check.a.cron`: \"0 25 * * *\" is no pattern: `25` at character 3 is no hour, which is 0 to 23",
        ),
        ("[check.a]\ncron = \"0 0 30 2 *\"\n", "no day within four years matches it"),
        (
            "[check.a]\ncron = \"0 3 * * *\"\nzone = \"Europe/Berln\"\n",
            ":3:1: `check.a.zone`: there is no time zone `Europe/Berln`; did you mean `Europe/Berlin`?",
        ),
        ("[check.a]\nevery = \"1h\"\ncron = \"@daily\"\n", ":3:1: `check.a.cron`: it has `every` as well"),
        ("[check.a]\nevery = \"1h\"\nzone = \"UTC\"\n", ":3:1: `check.a.zone`"),
        ("[check.a]\ngrace = \"1h\"\n", ":1:8: `check.a`: it does not say when it is expected"),
        ("[check.a]\nevery = \"1h\"\ngrase = \"1m\"\n", ":3:1: `check.a.grase`: no such key; did you mean `grace`?"),
        ("[check.a]\nevery = \"0s\"\n", ":2:1: `check.a.every`"),
        ("[process.a]\nstart_within = \"1m\"\n", ":1:10: `process.a`: nothing names the process"),
        ("[process.a]\npid = 7\nname = \"x\"\n", ":1:10: `process.a`: more than one key names the process"),
        ("[check.a]\nevery = \"1h\"\n[process.a]\npid = 7\n", ":3:10: `process.a`: another subject has this name"),
    ] {
        assert!(causes(text).contains(told), "{text}\n{}\n{told}", causes(text));
    }
}

/// Field case C017 (healthchecks/healthchecks#196): a daily time was refused because the clock was to be set soon.
#[test]
fn c017_a_daily_time_in_a_clock_change_is_accepted() {
    for zone in ["Europe/Berlin", "America/Santiago", "Australia/Lord_Howe"] {
        parse(&format!("[check.a]\ncron = \"30 2 * * *\"\nzone = \"{zone}\"\n")).unwrap();
    }
}

/// The shipped reference, as it is compiled in.
const SHIPPED: &str = include_str!("../../../config/latido.toml");

#[test]
fn the_shipped_config_equals_the_defaults() {
    let settings = parse(SHIPPED).unwrap_or_else(|error| panic!("{}", error.causes().join("\n")));
    assert_eq!(Settings { file: None, ..settings }, Settings::default());
}

#[test]
fn the_shipped_config_shows_every_key_and_its_examples_are_sound() {
    let examples: String = SHIPPED
        .lines()
        .map(|line| {
            line.strip_prefix('#').filter(|rest| rest.starts_with(|c: char| !c.is_whitespace())).unwrap_or(line)
        })
        .map(|line| format!("{line}\n"))
        .collect();
    parse(&examples).unwrap_or_else(|error| panic!("{}", error.causes().join("\n")));
    let value: toml::Value = toml::from_str(&examples).unwrap();
    let absent: Vec<String> = schema_keys().into_iter().filter(|key| !has(&value, key)).collect();
    assert!(absent.is_empty(), "config/latido.toml does not show {absent:?}");
    assert!(schema_keys().len() > 40, "the schema knows only {:?}", schema_keys());
}

fn has(value: &toml::Value, path: &str) -> bool {
    if let toml::Value::Array(values) = value {
        return values.iter().any(|value| has(value, path));
    }
    let (key, rest) = path.split_once('.').map_or((path, None), |(key, rest)| (key, Some(rest)));
    let toml::Value::Table(table) = value else { return false };
    let found: Vec<&toml::Value> =
        if key == "*" { table.values().collect() } else { table.get(key).into_iter().collect() };
    found.into_iter().any(|value| rest.is_none_or(|rest| has(value, rest)))
}

#[test]
fn the_shipped_schema_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/latido.schema.json");
    let current = schema_text();
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(&path, &current).unwrap();
    }
    let shipped = std::fs::read_to_string(&path).unwrap();
    assert!(shipped == current, "config/latido.schema.json is old: run this test with UPDATE_EXPECTED=1");
}

#[test]
fn alerts_of_a_single_rule_begin_with_what_holds_for_all() {
    let settings =
        parse("[alerts]\nconfirm_sweeps = 3\nremind_every = \"none\"\n[alerts.rule.liveness]\nconfirm_for = \"1m\"\n")
            .unwrap();
    let liveness = settings.alerts.rules["liveness"];
    assert_eq!((liveness.sweeps.get(), liveness.held_for.as_secs()), (3, 60));
    assert_eq!(settings.alerts.all.remind_every, None);
    assert_eq!(parse(&settings.to_toml().unwrap()).unwrap(), settings);
    let told = causes("[alerts]\nremind_every = \"5s\"\n[alerts.rule.livenes]\nconfirm_sweeps = 2\n");
    assert!(told.contains("`alerts.remind_every`: reminders less than 1m apart are noise"), "{told}");
    assert!(told.contains("there is no rule `livenes`; there are: liveness"), "{told}");
}

/// Where the config has no rule `liveness`, nobody waits for its answer.
#[test]
fn only_a_rule_that_there_is_can_be_silent() {
    assert!(parse("").unwrap().alerts.all.liveness_after.is_some());
    assert!(parse("rule = []\n").unwrap().alerts.all.liveness_after.is_none());
}

#[test]
fn a_config_may_be_an_empty_device_and_no_folder() {
    assert_eq!(text_of(std::path::Path::new("/dev/null")).unwrap(), "");
    assert!(text_of(std::path::Path::new("/dev")).is_err());
}
