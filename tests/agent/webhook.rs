//! The sink `webhook` in the agent, against a server that refuses, hangs up, and comes back.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::QUICK;
use crate::support::{Agent, World, wait_until};

const SECRET: &str = "s3cret-of-the-test";

/// A server on a port of its own. Until it is opened it answers that it cannot.
struct Server {
    port: u16,
    is_open: Arc<AtomicBool>,
    requests: Arc<Mutex<Vec<Request>>>,
}

#[derive(Clone)]
struct Request {
    head: String,
    body: serde_json::Value,
    was_taken: bool,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (is_open, requests) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (opens, heard) = (Arc::clone(&is_open), Arc::clone(&requests));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                // A client that was killed in the middle has asked for nothing.
                let Ok(request) = hear(&stream, opens.load(Ordering::Relaxed)) else { continue };
                let status = if request.was_taken { "200 OK" } else { "503 Service Unavailable" };
                heard.lock().unwrap().push(request);
                let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                let _answered = (&stream).write_all(answer.as_bytes());
            }
        });
        Self { port, is_open, requests }
    }

    fn config(&self) -> String {
        let origin = format!("http://127.0.0.1:{}", self.port);
        format!(
            "rule = []\n[[sink]]\nname = \"hook\"\nsource = \"builtin:webhook\"\n\
             settings = {{ preset = \"json\", url = \"{origin}/in\", headers = {{ x-token = \"{{{{secret:token}}}}\" }} }}\n\
             grant.http.origins = [\"{origin}\"]\ngrant.http.private = [\"127.0.0.1\"]\n\
             grant.http.secrets.token = {{ file = \"token\" }}\n"
        )
    }

    fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// The numbers of the entries that were taken, as they came.
    fn taken(&self) -> Vec<u64> {
        let taken = self.requests().into_iter().filter(|request| request.was_taken);
        let numbers = |request: Request| -> Vec<u64> {
            request.body.as_array().unwrap().iter().map(|entry| entry["sequence"].as_u64().unwrap()).collect()
        };
        taken.flat_map(numbers).collect()
    }
}

fn hear(stream: &TcpStream, was_taken: bool) -> std::io::Result<Request> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while reader.read_line(&mut head)? > 2 {}
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    Ok(Request { head, body: serde_json::from_slice(&body).unwrap_or_default(), was_taken })
}

#[test]
fn a_webhook_gets_every_entry_in_its_order_although_its_server_is_away_and_the_agent_is_killed() {
    let world = World::new();
    std::fs::write(world.home().join("token"), SECRET).unwrap();
    let server = Server::start();
    let agent = Agent::start(&world, &server.config());
    world.detach("a", QUICK, "exec sleep 1000");
    world.kill(world.start("a", 1).process.unwrap().pid, "KILL");
    wait_until("attempt 2", || world.attempts("a") == [1, 2]);
    wait_until("refusals", || server.requests().len() >= 2);
    let listed = world.latido(&["plugin", "list", "--json"]).ends_with(1).stdout;
    assert!(listed.contains("503") && !listed.contains(SECRET), "{listed}");
    agent.kill();

    server.is_open.store(true, Ordering::Relaxed);
    let agent = Agent::start(&world, &server.config());
    let all = || -> Vec<u64> { world.events().iter().map(|entry| entry.sequence).collect() };
    wait_until("every entry", || {
        let taken: BTreeSet<u64> = server.taken().into_iter().collect();
        all().iter().all(|sequence| taken.contains(sequence))
    });
    let taken = server.taken();
    assert!(taken.is_sorted(), "{taken:?}");
    let requests = server.requests();
    assert!(requests.iter().all(|request| request.head.contains(&format!("x-token: {SECRET}"))));
    assert!(requests.iter().all(|request| request.head.starts_with("POST /in HTTP/1.1\r\n")));
    let said = agent.said();
    agent.end();
    let journal = world.latido(&["events", "--json"]).stdout;
    assert!(!said.contains(SECRET) && !journal.contains(SECRET), "the secret stays with the host");
}
