//! Requests over HTTP, by a guest that sends what its settings say, to servers that behave and to servers that do not.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use latido_plugin_host::{HttpGrant, Kind, LookingUp, Names, PluginSpec, Secret, origin};
use serde_json::{Value, json};

use crate::limits::now;
use crate::server::{Answer, Server};
use crate::support::{World, beat, fault, guest, told};

/// Names that stand for what a test says, one list of addresses for each look-up; the last one stands for ever.
struct Listed {
    addresses: BTreeMap<&'static str, Vec<&'static str>>,
    asked: AtomicUsize,
}

impl Listed {
    fn of(addresses: &[(&'static str, &[&'static str])]) -> Arc<Self> {
        let addresses = addresses.iter().map(|(name, list)| (*name, list.to_vec())).collect();
        Arc::new(Self { addresses, asked: AtomicUsize::new(0) })
    }
}

impl Names for Listed {
    fn look_up<'a>(&'a self, name: &'a str, port: u16) -> LookingUp<'a> {
        let turn = self.asked.fetch_add(1, Ordering::Relaxed);
        let list = self.addresses.get(name);
        let address = list.and_then(|list| list.get(turn).or(list.last()));
        let found = match address {
            Some(address) => Ok(vec![SocketAddr::new(address.parse().unwrap(), port)]),
            None => Err(io::Error::other("no such name")),
        };
        Box::pin(async move { found })
    }
}

/// A grant of these origins, with the loopback address and nothing else that is private.
fn grant(origins: &[String]) -> HttpGrant {
    let mut grant = HttpGrant::to(origins.iter().map(|text| origin(text).unwrap()));
    grant.private.push("127.0.0.1".parse().unwrap());
    grant
}

fn spec(world: &World, grant: HttpGrant, requests: Value) -> PluginSpec {
    let mut spec = PluginSpec::new("probe", Kind::Sink, guest("probe"));
    spec.settings = json!({ "requests": requests });
    spec.grants.sql.insert("main".into(), world.path("main.db").into());
    spec.grants.files.insert("main".into(), world.path("main.txt").into());
    spec.grants.state = Some(Arc::new(latido_plugin_host::MemoryState::default()));
    spec.grants.http = Some(grant);
    spec
}

/// What the guest was answered to each of its requests.
async fn answers(grant: HttpGrant, requests: Value) -> Vec<String> {
    let world = World::new();
    let mut sink = world.host.load_sink(spec(&world, grant, requests)).await.unwrap();
    let told = told(&mut sink).await;
    assert!(sink.is_warm(), "no answer is a fault");
    told
}

fn file(world: &World, name: &str, text: &str) -> Secret {
    let path = world.path(name);
    std::fs::write(&path, text).unwrap();
    Secret::File(path)
}

#[tokio::test]
async fn a_request_goes_out_as_it_was_put_together_with_secrets_and_signature() {
    let world = World::new();
    let server = Server::start("127.0.0.1", |_| Answer::text(200, "fine")).await;
    let mut grant = grant(&[server.origin()]);
    grant.secrets.insert("key".into(), file(&world, "key", "key\n"));
    grant.secrets.insert("token".into(), file(&world, "token", "t0ken"));
    let request = json!({
        "method": "POST",
        "url": [server.origin(), "/hook/", { "secret": "token" }, "?a=b"],
        "headers": { "Content-Type": ["text/plain"], "X-Token": ["Bearer ", { "secret": "token" }], "Authorization": [{ "basic": "token" }] },
        "body": ["The quick brown fox jumps over ", "the lazy dog"],
        "signature": { "secret": "key", "header": "X-Signature", "prefix": "sha256=", "before": "" },
    });
    assert_eq!(answers(grant, json!([request])).await, ["200 fine"]);
    let heard = server.heard();
    let text = &heard[0];
    assert!(text.starts_with("POST /hook/t0ken?a=b HTTP/1.1\r\n"), "{text}");
    for line in [
        format!("host: 127.0.0.1:{}", server.port),
        "content-type: text/plain".into(),
        "x-token: Bearer t0ken".into(),
        "authorization: Basic dXNlcjp0MGtlbg==".into(),
        // The well-known example of HMAC-SHA-256 with the key `key`.
        "x-signature: sha256=f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8".into(),
        "content-length: 43".into(),
        format!("user-agent: latido/{}", env!("CARGO_PKG_VERSION")),
    ] {
        assert!(text.contains(&format!("\r\n{line}\r\n")), "{line} is missing in {text}");
    }
    assert!(text.ends_with("\r\n\r\nThe quick brown fox jumps over the lazy dog"), "{text}");
}

#[tokio::test]
async fn a_refusal_tells_a_plugin_no_secret_that_it_put_into_the_address() {
    let world = World::new();
    let mut grant = grant(&["https://granted.example".to_owned()]);
    grant.secrets.insert("key".into(), file(&world, "key", "hunter2"));
    let secret = json!({ "secret": "key" });
    let urls = [
        json!(["https://", secret, ".example/"]),
        json!(["https://granted.example:", secret, "/"]),
        json!(["http://", secret]),
        json!([secret, "://granted.example"]),
        json!(["https://granted.example@", secret]),
        json!(["https://granted.example/", secret]),
    ];
    let requests: Vec<Value> = urls.iter().map(|url| json!({ "method": "GET", "url": url })).collect();
    let told = answers(grant, json!(requests)).await;
    assert_eq!(told.len(), urls.len());
    assert!(!told.iter().any(|told| told.contains("hunter2")), "{told:?}");
}

#[tokio::test]
async fn what_is_not_granted_is_denied_and_nobody_hears_of_it() {
    let server = Server::start("127.0.0.1", |_| Answer::text(200, "fine")).await;
    let other = Server::start("127.0.0.1", |_| Answer::text(200, "fine")).await;
    let requests = json!([
        { "url": [other.origin()] },
        { "url": [server.origin().replace("127.0.0.1", "localhost")] },
        { "url": [server.origin()], "headers": { "X": [{ "secret": "unknown" }] } },
        { "url": [server.origin()], "headers": { "Host": ["evil.example"] } },
        { "url": [server.origin()], "headers": { "Transfer-Encoding": ["chunked"] } },
        { "url": ["ftp://example.org/"] },
    ]);
    let told = answers(grant(&[server.origin()]), requests).await;
    let expected = [
        "Denied(\"the origin `",
        "Denied(\"the origin `",
        "Denied(\"the secret `unknown`",
        "host alone",
        "host alone",
        "neither http",
    ];
    for (answer, part) in told.iter().zip(expected) {
        assert!(answer.contains(part), "{answer}");
    }
    assert_eq!((server.heard().len(), other.heard().len()), (0, 0));
    // Without the address, the origin alone is not enough: it is a private one.
    let bare = HttpGrant::to([origin(&server.origin()).unwrap()]);
    let told = answers(bare, json!([{ "url": [server.origin()] }])).await;
    assert!(told[0].contains("127.0.0.1, which is no public address"), "{told:?}");
    assert_eq!(server.heard().len(), 0);
}

#[tokio::test]
async fn redirects_are_judged_like_the_first_address() {
    let inner = Server::start("127.0.0.2", |_| Answer::text(200, "secrets of the house")).await;
    let target = inner.origin();
    let server = Server::start("127.0.0.1", move |head| match head.split(' ').nth(1) {
        Some("/metadata") => Answer::redirect(302, "http://169.254.169.254/latest/meta-data/"),
        Some("/inner") => Answer::redirect(307, &target),
        Some("/again") => Answer::redirect(302, "/here?x"),
        Some("/round") => Answer::redirect(302, "/round"),
        _ => Answer::text(200, "here"),
    })
    .await;
    let to = |path: &str, redirects: u8| json!({ "url": [server.origin(), path], "redirects": redirects });
    let origins = [server.origin(), inner.origin(), "http://169.254.169.254".to_owned()];
    let requests = json!([to("/metadata", 5), to("/inner", 5), to("/again", 5), to("/again", 0), to("/round", 3)]);
    let told = answers(grant(&origins), requests.clone()).await;
    assert!(told[0].contains("169.254.169.254, which is no public address"), "{told:?}");
    assert!(told[1].contains("127.0.0.2, which is no public address"), "{told:?}");
    assert_eq!((told[2].as_str(), &told[3][..3], &told[4][..3]), ("200 here", "302", "302"));
    assert_eq!(inner.heard().len(), 0);
    // And an address that might be dialled is of no use where its origin was not granted.
    let mut open = grant(&origins[..1]);
    open.private.push("127.0.0.0/8".parse().unwrap());
    let told = answers(open, json!([to("/inner", 5)])).await;
    assert!(told[0].contains("is not granted"), "{told:?}");
    assert_eq!(inner.heard().len(), 0);
}

#[tokio::test]
async fn a_redirect_to_another_origin_carries_no_secret() {
    let world = World::new();
    let other = Server::start("127.0.0.1", |_| Answer::text(200, "other")).await;
    let target = other.origin();
    let server = Server::start("127.0.0.1", move |_| Answer::redirect(307, &target)).await;
    let mut both = grant(&[server.origin(), other.origin()]);
    both.secrets.insert("token".into(), file(&world, "token", "t0ken"));
    let request = |body: Value| {
        json!({
            "method": "POST", "url": [server.origin()], "redirects": 1, "body": body,
            "headers": { "X-Token": [{ "secret": "token" }], "Authorization": ["Bearer plain"], "X-Plain": ["stays"] },
        })
    };
    let told = answers(both, json!([request(json!(["text"])), request(json!([{ "secret": "token" }]))])).await;
    assert_eq!(told[0], "200 other");
    assert!(told[1].contains("would carry a secret"), "{told:?}");
    let heard = other.heard();
    assert_eq!(heard.len(), 1);
    assert!(heard[0].contains("x-plain: stays") && heard[0].ends_with("text"), "{}", heard[0]);
    assert!(!heard[0].contains("t0ken") && !heard[0].contains("authorization"), "{}", heard[0]);
}

#[tokio::test]
async fn a_name_that_changes_its_address_is_dialled_where_it_was_judged() {
    let good = Server::start("127.0.0.1", |_| Answer::text(200, "good")).await;
    let url = format!("http://rebind.example:{}", good.port);
    let names = Listed::of(&[("rebind.example", &["127.0.0.1", "127.0.0.2"])]);
    let mut grant = grant(std::slice::from_ref(&url));
    grant.names = Arc::clone(&names) as Arc<dyn Names>;
    let told = answers(grant, json!([{ "url": [url] }, { "url": [url] }])).await;
    assert_eq!(told[0], "200 good");
    assert!(told[1].contains("127.0.0.2, which is no public address"), "{told:?}");
    assert_eq!(names.asked.load(Ordering::Relaxed), 2, "one look-up for each request");
    assert!(good.heard()[0].contains(&format!("host: rebind.example:{}", good.port)));
}

#[tokio::test]
async fn names_of_private_addresses_are_denied_in_every_form() {
    for address in ["169.254.169.254", "10.0.0.1", "::1", "::ffff:127.0.0.1", "fd00:ec2::254"] {
        let mut grant = HttpGrant::to(["https://inside.example".to_owned()]);
        grant.names = Listed::of(&[("inside.example", &[address])]);
        let told = answers(grant, json!([{ "url": ["https://inside.example/"] }])).await;
        assert!(told[0].contains("Denied(") && told[0].contains("no public address"), "{address}: {told:?}");
    }
}

#[tokio::test]
async fn an_answer_has_an_end() {
    let server = Server::start("127.0.0.1", |head| match head.split(' ').nth(1) {
        Some("/announced") => Answer::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n".to_vec()),
        Some("/headers") => {
            let lines: String = (0..200).map(|number| format!("x-{number}: y\r\n")).collect();
            Answer::Bytes(format!("HTTP/1.1 200 OK\r\n{lines}content-length: 0\r\n\r\n").into_bytes())
        }
        Some("/rubbish") => Answer::Bytes(b"220 ftp ready\r\n".to_vec()),
        _ => Answer::Endless,
    })
    .await;
    let to = |path: &str| json!({ "url": [server.origin(), path] });
    let requests = json!([to("/announced"), to("/endless"), to("/headers"), to("/rubbish")]);
    let told = answers(grant(&[server.origin()]), requests).await;
    assert_eq!((told[0].as_str(), told[1].as_str()), ("HttpError::TooLarge", "HttpError::TooLarge"));
    assert!(told[2].contains("Unreachable(") && told[3].contains("Unreachable("), "{told:?}");
}

#[tokio::test]
async fn a_server_that_drips_is_given_up_in_time() {
    let server = Server::start("127.0.0.1", |_| Answer::Drip).await;
    let begun = now();
    let request = json!({ "url": [server.origin()], "within": 300 });
    assert_eq!(answers(grant(&[server.origin()]), json!([request])).await, ["HttpError::Timeout"]);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());

    // A longer time than what is granted is cut to that, and the call's own deadline ends it all the same.
    let world = World::new();
    let mut impatient =
        spec(&world, grant(&[server.origin()]), json!([{ "url": [server.origin()], "within": 3_600_000 }]));
    impatient.limits.http = Duration::from_millis(200);
    let mut sink = world.host.load_sink(impatient.clone()).await.unwrap();
    assert_eq!(told(&mut sink).await, ["HttpError::Timeout"]);
    impatient.limits.http = Duration::from_secs(60);
    impatient.limits.wall = Duration::from_secs(1);
    let mut sink = world.host.load_sink(impatient).await.unwrap();
    let ended = fault(sink.write(&beat(1)).await);
    assert_eq!(ended, latido_plugin_host::FaultKind::WallDeadline(Duration::from_secs(1)));
}

fn certificate(name: &str) -> PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/certificates").join(name)
}

#[tokio::test]
async fn a_certificate_has_to_be_trusted_and_of_the_name() {
    let server = Server::encrypted("127.0.0.1", &certificate("server.pem"), &certificate("server.key")).await;
    let url = |name: &str| format!("https://{name}:{}", server.port);
    let with_ca = |ca: Option<PathBuf>| {
        let mut grant = grant(&[url("hooks.example"), url("other.example")]);
        grant.names = Listed::of(&[("hooks.example", &["127.0.0.1"]), ("other.example", &["127.0.0.1"])]);
        grant.ca = ca;
        grant
    };
    let requests = json!([{ "url": [url("hooks.example")] }, { "url": [url("other.example")] }]);
    let told = answers(with_ca(Some(certificate("authority.pem"))), requests.clone()).await;
    assert_eq!(told[0], "200 encrypted");
    assert!(told[1].contains("Unreachable(") && told[1].contains("not valid for name"), "{told:?}");
    let told = answers(with_ca(None), requests).await;
    assert!(!told[0].starts_with("200"), "an authority that nobody trusts: {told:?}");
}
