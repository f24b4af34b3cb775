//! The sink `webhook`, against a real server.

use std::sync::atomic::{AtomicUsize, Ordering};

use latido_plugin_host::{
    Acknowledgement, CallError, Entries, Field, HttpGrant, Kind, LoadError, PluginError, PluginSpec, Secret, Sink,
    origin,
};
use serde_json::{Value, json};

use crate::server::{Answer, Server};
use crate::support::{World, at, beats, builtin, none};

/// An alert that fires, with what would break careless templates.
fn alert(state: &str) -> Entries {
    let mut entries = none();
    let mut says = entries.add(5, at(5), "alert");
    says.text(Field::Rule, "liveness").text(Field::Fingerprint, "f00").text(Field::Subject, "catalogue");
    says.text(Field::Severity, "critical").text(Field::State, state);
    says.text(Field::Summary, "catalogue is \"stale\" & <!channel>\n@everyone");
    entries
}

/// The webhook with these settings and these secrets, allowed to reach the server.
fn spec(world: &World, origins: &[String], settings: Value, secrets: &[(&str, &str)]) -> PluginSpec {
    let mut spec = PluginSpec::new("hook", Kind::Sink, builtin("webhook"));
    let mut grant = HttpGrant::to(origins.iter().map(|text| origin(text).unwrap()));
    grant.private.push("127.0.0.1".parse().unwrap());
    for (name, value) in secrets {
        let path = world.path(name);
        std::fs::write(&path, value).unwrap();
        grant.secrets.insert((*name).to_owned(), Secret::File(path));
    }
    spec.grants.http = Some(grant);
    spec.settings = settings;
    spec
}

async fn load(world: &World, server: &Server, settings: Value, secrets: &[(&str, &str)]) -> Sink {
    world.host.load_sink(spec(world, &[server.origin()], settings, secrets)).await.unwrap()
}

/// The body of a request as JSON.
fn body(heard: &str) -> Value {
    serde_json::from_str(heard.split_once("\r\n\r\n").unwrap().1).unwrap()
}

fn head(heard: &str) -> &str {
    heard.split_once("\r\n\r\n").unwrap().0
}

/// What a preset sends for an alert, to the server in place of its own address.
async fn sent(preset: &str, values: Value, secrets: &[(&str, &str)]) -> String {
    let world = World::new();
    let server = Server::start("127.0.0.1", |_| Answer::text(202, "ok")).await;
    let settings = json!({ "preset": preset, "url": format!("{}/hook", server.origin()), "values": values });
    let mut sink = load(&world, &server, settings, secrets).await;
    assert_eq!(sink.write(&alert("firing")).await.unwrap(), Acknowledgement { durable: 5, refused: Vec::new() });
    server.heard().remove(0)
}

const TEXT: &str = "catalogue is \"stale\" & <!channel>\n@everyone";

#[tokio::test]
async fn slack_gets_markup_in_which_no_text_calls_a_channel() {
    let expected = "*catalogue: critical*\ncatalogue is \"stale\" &amp; &lt;!channel&gt;\n@everyone";
    assert_eq!(body(&sent("slack", json!({}), &[]).await), json!({ "text": expected }));
}

#[tokio::test]
async fn discord_is_told_to_mention_nobody() {
    let expected =
        json!({ "content": format!("**catalogue: critical**\n{TEXT}"), "allowed_mentions": { "parse": [] } });
    assert_eq!(body(&sent("discord", json!({}), &[]).await), expected);
}

#[tokio::test]
async fn ntfy_gets_topic_title_message_and_priority() {
    let expected = json!({
        "topic": "t0pic", "title": "catalogue: critical", "message": TEXT, "priority": 5, "tags": ["warning"],
    });
    assert_eq!(body(&sent("ntfy", json!({}), &[("topic", "t0pic")]).await), expected);
}

#[tokio::test]
async fn pagerduty_is_triggered_and_resolved_by_the_fingerprint() {
    let world = World::new();
    let server = Server::start("127.0.0.1", |_| Answer::text(202, "ok")).await;
    let settings = json!({ "preset": "pagerduty", "url": server.origin() });
    let mut sink = load(&world, &server, settings, &[("routing_key", "r0ute")]).await;
    sink.write(&alert("firing")).await.unwrap();
    sink.write(&alert("resolved")).await.unwrap();
    let heard = server.heard();
    let (fired, resolved) = (body(&heard[0]), body(&heard[1]));
    assert_eq!(
        (&fired["routing_key"], &fired["event_action"], &fired["dedup_key"]),
        (&json!("r0ute"), &json!("trigger"), &json!("f00"))
    );
    let payload = &fired["payload"];
    assert_eq!(payload["summary"], json!(format!("catalogue: critical: {TEXT}")));
    assert_eq!((&payload["severity"], &payload["source"]), (&json!("critical"), &json!("latido agent-1")));
    assert_eq!(payload["timestamp"], json!("2023-11-14T22:13:20.005Z"));
    assert_eq!(payload["custom_details"]["rule"], json!("liveness"));
    assert_eq!((&resolved["event_action"], &resolved["dedup_key"]), (&json!("resolve"), &json!("f00")));
}

#[tokio::test]
async fn teams_gets_an_adaptive_card() {
    let sent = body(&sent("teams", json!({}), &[]).await);
    let card = &sent["attachments"][0];
    assert_eq!(
        (&sent["type"], &card["contentType"]),
        (&json!("message"), &json!("application/vnd.microsoft.card.adaptive"))
    );
    assert_eq!((&card["content"]["type"], &card["content"]["version"]), (&json!("AdaptiveCard"), &json!("1.4")));
    assert_eq!(card["content"]["body"][0]["text"], json!("catalogue: critical"));
    assert_eq!(card["content"]["body"][1]["text"], json!(TEXT));
}

#[tokio::test]
async fn telegram_gets_plain_text_for_a_chat() {
    let expected = json!({ "chat_id": "-100123", "text": format!("catalogue: critical\n{TEXT}") });
    assert_eq!(body(&sent("telegram", json!({ "chat_id": "-100123" }), &[]).await), expected);
}

#[tokio::test]
async fn mail_goes_by_resend_with_its_key_and_once() {
    let values = json!({ "from": "latido@example.org", "to": "ops@example.org" });
    let heard = sent("resend", values, &[("key", "re_123")]).await;
    assert!(
        head(&heard).contains("\r\nauthorization: Bearer re_123")
            && head(&heard).contains("\r\nidempotency-key: agent-1-5")
    );
    let sent = body(&heard);
    assert_eq!(
        (&sent["from"], &sent["to"], &sent["subject"]),
        (&json!("latido@example.org"), &json!(["ops@example.org"]), &json!("catalogue: critical"))
    );
    assert!(sent["text"].as_str().unwrap().starts_with(TEXT), "{sent}");
}

/// Where a preset sends to by itself is seen by what is denied.
#[tokio::test]
async fn presets_know_their_own_addresses() {
    let world = World::new();
    for (preset, values, expected) in [
        ("slack", json!({}), "of an address with a secret"),
        ("discord", json!({}), "of an address with a secret"),
        ("teams", json!({}), "of an address with a secret"),
        ("ntfy", json!({}), "`https://ntfy.sh`"),
        ("pagerduty", json!({}), "`https://events.pagerduty.com`"),
        ("telegram", json!({ "chat_id": "1" }), "`https://api.telegram.org`"),
        ("resend", json!({ "from": "a", "to": "b" }), "`https://api.resend.com`"),
    ] {
        let secrets = ["url", "topic", "routing_key", "token", "key"].map(|name| (name, "https://receiver.example/x"));
        let settings = json!({ "preset": preset, "values": values });
        let mut sink = world.host.load_sink(spec(&world, &[], settings, &secrets)).await.unwrap();
        let error = sink.write(&alert("firing")).await.unwrap_err();
        let Some(PluginError::Denied(what)) = error.answer() else { panic!("{preset}: {error}") };
        assert!(what.contains(expected), "{preset}: {what}");
    }
}

#[tokio::test]
async fn entries_go_as_a_signed_list_and_the_rest_comes_again() {
    let world = World::new();
    let server = Server::start("127.0.0.1", |_| Answer::text(200, "")).await;
    let settings = json!({
        "url": format!("{}/{{{{type}}}}", server.origin()),
        "batch_max": 2,
        "headers": { "X-First": "{{id}}" },
        "signature": { "secret": "key", "header": "webhook-signature", "prefix": "v1,", "before": "{{id}}.{{at-s}}.", "form": "base64" },
    });
    let mut sink = load(&world, &server, settings, &[("key", "k")]).await;
    assert_eq!(sink.write(&beats(1..=3)).await.unwrap().durable, 2);
    assert_eq!(sink.write(&beats(3..=3)).await.unwrap().durable, 3);
    assert_eq!(sink.write(&none()).await.unwrap().durable, 0);
    let heard = server.heard();
    assert_eq!(heard.len(), 2);
    assert!(heard[0].starts_with("POST /beat HTTP/1.1\r\n") && head(&heard[0]).contains("\r\nx-first: agent-1-1"));
    let sent = body(&heard[0]);
    assert_eq!((sent.as_array().unwrap().len(), &sent[1]["progress"]["done"]), (2, &json!(2)));
    let text = heard[0].split_once("\r\n\r\n").unwrap().1;
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, b"k");
    let tag = ring::hmac::sign(&key, format!("agent-1-1.1700000000.{text}").as_bytes());
    let expected = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, tag.as_ref());
    assert!(head(&heard[0]).contains(&format!("\r\nwebhook-signature: v1,{expected}")), "{}", heard[0]);
}

#[tokio::test]
async fn answers_are_taken_as_they_are_meant() {
    let world = World::new();
    let turn = AtomicUsize::new(0);
    let server = Server::start("127.0.0.1", move |_| match turn.fetch_add(1, Ordering::Relaxed) {
        0 => Answer::Bytes(b"HTTP/1.1 429 X\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n".to_vec()),
        1 => Answer::text(429, r#"{"ok":false,"parameters":{"retry_after":3}}"#),
        2 => Answer::text(429, ""),
        3 => Answer::text(500, "out\nof order"),
        4 => Answer::text(401, "who are you"),
        5 => Answer::text(400, "no \"blocks\""),
        _ => Answer::text(204, ""),
    })
    .await;
    let settings = json!({ "preset": "slack", "url": server.origin() });
    let mut sink = load(&world, &server, settings, &[]).await;
    let mut said = Vec::new();
    for _ in 0..5 {
        let error = sink.write(&alert("firing")).await.unwrap_err();
        said.push(error.answer().cloned().unwrap());
    }
    assert_eq!(
        said[..3],
        [PluginError::RetryAfter(7000), PluginError::RetryAfter(3000), PluginError::RetryAfter(5000)]
    );
    assert_eq!(said[3], PluginError::Retry("status 500: out of order".into()));
    assert_eq!(said[4], PluginError::Retry("status 401: who are you".into()));
    let refused = sink.write(&alert("firing")).await.unwrap();
    assert_eq!((refused.durable, refused.refused[0].sequence), (5, 5));
    assert_eq!(refused.refused[0].why, "status 400: no \"blocks\"");
    assert_eq!(sink.write(&alert("firing")).await.unwrap().refused, []);
    assert!(sink.is_warm());
}

/// Field case C262, where the receiver judges a list: what is good is not set aside with what is not.
#[tokio::test]
async fn an_entry_that_is_refused_takes_no_other_of_its_list_with_it() {
    let world = World::new();
    let poisoned = |heard: &str| heard.contains("\"sequence\":7,");
    let server =
        Server::start("127.0.0.1", move |heard| Answer::text(if poisoned(heard) { 422 } else { 200 }, "")).await;
    let mut sink = load(&world, &server, json!({ "url": server.origin() }), &[]).await;
    let (mut through, mut set_aside, mut calls) = (0, Vec::new(), 0);
    while through < 20 {
        let said = sink.write(&beats(through + 1..=20)).await.unwrap();
        assert!(said.durable > through, "each call comes on");
        through = said.durable;
        set_aside.extend(said.refused.iter().map(|refusal| refusal.sequence));
        calls += 1;
    }
    assert_eq!(set_aside, [7]);
    let taken: Vec<u64> = server
        .heard()
        .iter()
        .filter(|heard| !poisoned(heard))
        .flat_map(|heard| {
            body(heard).as_array().unwrap().iter().map(|entry| entry["sequence"].as_u64().unwrap()).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(taken, (1..=20).filter(|number| *number != 7).collect::<Vec<_>>(), "each once, in order");
    assert!(calls < 8 && server.heard().len() < 20, "{calls} calls, {} requests", server.heard().len());
}

#[tokio::test]
async fn a_server_that_is_not_there_is_asked_again_later() {
    let world = World::new();
    let settings = json!({ "url": "http://127.0.0.1:1/" });
    let origins = ["http://127.0.0.1:1".to_owned()];
    let mut sink = world.host.load_sink(spec(&world, &origins, settings, &[])).await.unwrap();
    let error: CallError = sink.write(&alert("firing")).await.unwrap_err();
    assert!(matches!(error.answer(), Some(PluginError::Retry(why)) if why.contains("http://127.0.0.1:1")), "{error}");
}

#[tokio::test]
async fn settings_with_a_mistake_are_refused_with_what_is_known() {
    let world = World::new();
    for (settings, part) in [
        (json!({}), "`url` is missing"),
        (json!({ "preset": "slak" }), "known: json, slack, discord, ntfy, pagerduty, teams, telegram, resend"),
        (json!({ "preset": "telegram" }), "`values.chat_id` is missing"),
        (json!({ "url": "https://a/{{value:b}}" }), "`values.b` is missing"),
        (json!({ "url": "https://a/{{b" }), "has no end"),
        (json!({ "url": "https://a", "body": "{{file:x}}" }), "`file:` is unknown"),
        (json!({ "preset": "slack", "batch_max": 2 }), "`batch_max` is from 1 to 1 here"),
        (json!({ "url": "https://a", "signature": { "header": "x" } }), "`signature.secret` is missing"),
        (json!({ "url": "https://a", "colour": "red" }), "unknown setting `colour`"),
    ] {
        let Err(error) = world.host.load_sink(spec(&world, &[], settings.clone(), &[])).await else {
            panic!("{settings} was taken")
        };
        assert!(matches!(&error, LoadError::Start { .. }), "{error}");
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.contains(part), "{settings}: {cause}");
    }
}
