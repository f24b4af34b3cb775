//! What languages do that would break a plugin, and projects keep from happening.

use std::fs;

use latido_plugin_host::{Host, HostSettings, Kind, PluginSpec, Rule, Subject, SubjectKind, Verdict};
use latido_plugin_kit::{Language, Project};

use crate::projects::{built, project};

fn subject(name: &str, silence: u64) -> Subject {
    Subject {
        name: name.to_owned(),
        kind: SubjectKind::Job,
        host: "host".to_owned(),
        policy: "default".to_owned(),
        verdict: Verdict::Stale,
        since: 0,
        reason: String::new(),
        last_beat: None,
        silence: Some(silence),
        progress: None,
        progress_changed: None,
        usage: None,
        attempt: 1,
        epoch: 1,
        errors: 0,
        attributes: Vec::new(),
    }
}

fn host(folder: &std::path::Path) -> Host {
    Host::new(HostSettings { cache: folder.join("cache"), compiler: None, metered: false }).unwrap()
}

async fn load(host: &Host, project: &Project) -> Rule {
    let component = fs::read(project.component()).unwrap();
    host.load_rule(PluginSpec::new(project.name(), Kind::Rule, component)).await.unwrap()
}

#[tokio::test]
async fn the_collector_of_go_begins_at_no_moment_that_traps() {
    let folder = tempfile::tempdir().unwrap();
    let project = project(folder.path(), Language::Go, Kind::Rule);
    if built(&project).is_none() {
        return;
    }
    let mut rule = load(&host(folder.path()), &project).await;
    let subjects: Vec<Subject> = (0..1000).map(|number| subject(&format!("worker {number}"), 200_000)).collect();
    // Each call brings half a megabyte: without a collection the limit of 64 MiB would end it.
    for _ in 0..300 {
        assert_eq!(rule.evaluate(1_000, &subjects).await.unwrap().len(), 1000);
    }
}

#[tokio::test]
async fn random_numbers_in_javascript_are_not_those_of_the_build() {
    let folder = tempfile::tempdir().unwrap();
    let project = project(folder.path(), Language::JavaScript, Kind::Rule);
    let source = project.root().join("plugin.js");
    let text = fs::read_to_string(&source).unwrap();
    fs::write(&source, text.replace("key: \"silent\"", "key: String(Math.random())")).unwrap();
    if built(&project).is_none() {
        return;
    }
    let host = host(folder.path());
    let mut drawn = Vec::new();
    for _ in 0..3 {
        let mut rule = load(&host, &project).await;
        for _ in 0..3 {
            let found = rule.evaluate(1_000, &[subject("night", 200_000)]).await.unwrap();
            let number: f64 = found[0].key.parse().unwrap();
            assert!((0.0..1.0).contains(&number), "{number}");
            drawn.push(found[0].key.clone());
        }
    }
    let before = drawn.len();
    drawn.sort();
    drawn.dedup();
    assert_eq!(drawn.len(), before, "{drawn:?}");
}
