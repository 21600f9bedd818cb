//! A DNS server in the process of a test: answers with what it is told, over UDP and TCP.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinHandle;

const CNAME: u16 = 5;
const TXT: u16 = 16;
const A: u16 = 1;

/// How the server answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DnsManner {
    /// By its records.
    #[default]
    Honest,
    /// With a code of an error: 2 for a failure of the server, 5 for a refusal.
    Code(u8),
    /// By its records, and with a code of an error where it is asked for texts.
    CodeForTxt(u8),
    /// Not at all.
    Silent,
    /// With bytes that are no message.
    Garbage,
    /// With its records under a name that nobody asked for.
    OtherNames,
    /// With the mark of a longer answer over UDP, so that it is asked over TCP.
    Truncated,
}

#[derive(Debug, Default)]
struct Zone {
    records: HashMap<(String, u16), Vec<String>>,
    manner: DnsManner,
    asked: usize,
}

/// A running DNS server.
#[derive(Debug)]
pub struct DnsServer {
    address: SocketAddr,
    zone: Arc<Mutex<Zone>>,
    tasks: [JoinHandle<()>; 2],
}

impl DnsServer {
    /// Starts a server that has no records.
    ///
    /// # Panics
    /// When no port is free.
    pub async fn start() -> Self {
        let zone = Arc::new(Mutex::new(Zone::default()));
        let (udp, tcp) = bind().await;
        let address = udp.local_addr().unwrap();
        let tasks = [
            tokio::spawn(serve_udp(udp, Arc::clone(&zone))),
            tokio::spawn(serve_tcp(tcp, Arc::clone(&zone))),
        ];
        Self {
            address,
            zone,
            tasks,
        }
    }

    /// Returns the address of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the target of a name's CNAME record.
    pub fn set_cname(&self, name: &str, target: &str) {
        self.set(name, CNAME, &[target]);
    }

    /// Sets the TXT records of a name.
    pub fn set_txt(&self, name: &str, texts: &[&str]) {
        self.set(name, TXT, texts);
    }

    /// Sets the address of a name.
    pub fn set_address(&self, name: &str, ip: &str) {
        self.set(name, A, &[ip]);
    }

    fn set(&self, name: &str, kind: u16, values: &[&str]) {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        let key = (name.to_owned(), kind);
        self.zone.lock().unwrap().records.insert(key, values);
    }

    /// Sets what an owner was told to set.
    ///
    /// # Panics
    /// For a record of another type.
    pub fn set_record(&self, record: &serde_json::Value) {
        let (name, value) = (
            record["name"].as_str().unwrap(),
            record["value"].as_str().unwrap(),
        );
        match record["type"].as_str().unwrap() {
            "CNAME" => self.set_cname(name, value),
            "TXT" => self.set_txt(name, &[value]),
            other => panic!("{other}"),
        }
    }

    /// Removes all records of a name, and those of its proof.
    pub fn clear(&self, name: &str) {
        let proof = format!("_svc.{name}");
        let mut zone = self.zone.lock().unwrap();
        zone.records
            .retain(|(known, _), _| *known != name && *known != proof);
    }

    /// Has the server answer in another manner from now on.
    pub fn set_manner(&self, manner: DnsManner) {
        self.zone.lock().unwrap().manner = manner;
    }

    /// Returns how many questions were asked.
    pub fn asked(&self) -> usize {
        self.zone.lock().unwrap().asked
    }
}

impl Drop for DnsServer {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Binds one port for both protocols.
async fn bind() -> (UdpSocket, TcpListener) {
    for _ in 0..100 {
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        if let Ok(udp) = UdpSocket::bind(tcp.local_addr().unwrap()).await {
            return (udp, tcp);
        }
    }
    panic!("no port is free for both protocols");
}

async fn serve_udp(socket: UdpSocket, zone: Arc<Mutex<Zone>>) {
    let mut buffer = [0; 4096];
    loop {
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else {
            continue;
        };
        if let Some(answer) = answer(&buffer[..length], &zone, true) {
            let _ = socket.send_to(&answer, from).await;
        }
    }
}

async fn serve_tcp(listener: TcpListener, zone: Arc<Mutex<Zone>>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve_stream(stream, Arc::clone(&zone)));
    }
}

async fn serve_stream(mut stream: TcpStream, zone: Arc<Mutex<Zone>>) {
    while let Ok(length) = stream.read_u16().await {
        let mut message = vec![0; usize::from(length)];
        if stream.read_exact(&mut message).await.is_err() {
            return;
        }
        if let Some(answer) = answer(&message, &zone, false) {
            let length = u16::try_from(answer.len()).unwrap();
            let answer = [&length.to_be_bytes()[..], &answer].concat();
            if stream.write_all(&answer).await.is_err() {
                return;
            }
        }
    }
}

/// Answers a message; `None` for silence.
fn answer(message: &[u8], zone: &Mutex<Zone>, is_udp: bool) -> Option<Vec<u8>> {
    let mut zone = zone.lock().unwrap();
    zone.asked += 1;
    let (name, end) = read_name(message)?;
    let kind = u16::from_be_bytes([*message.get(end)?, *message.get(end + 1)?]);
    let question = message.get(12..end + 4)?;
    let mut code = 0;
    let mut truncated = false;
    match zone.manner {
        DnsManner::Silent => return None,
        DnsManner::Garbage => return Some(vec![0xff; 40]),
        DnsManner::Code(given) => code = given,
        DnsManner::CodeForTxt(given) if kind == TXT => code = given,
        DnsManner::Truncated => truncated = is_udp,
        DnsManner::Honest | DnsManner::OtherNames | DnsManner::CodeForTxt(_) => {}
    }
    let mut records = Vec::new();
    if code == 0 && !truncated {
        records = found_records(&zone, &name, kind);
        let exists = zone.records.keys().any(|(known, _)| *known == name);
        code = if exists { 0 } else { 3 };
    }
    let mut answer = message[..2].to_vec();
    answer.extend([0x81 | if truncated { 2 } else { 0 }, 0x80 | code]);
    for count in [1, records.len(), 0, 0] {
        answer.extend(u16::try_from(count).unwrap().to_be_bytes());
    }
    answer.extend(question);
    for (owner, kind, value) in &records {
        let owner = match zone.manner {
            DnsManner::OtherNames => "other.net",
            _ => owner,
        };
        answer.extend(name_bytes(owner));
        answer.extend(kind.to_be_bytes());
        answer.extend([0, 1, 0, 0, 0, 60]);
        let data = match *kind {
            CNAME => name_bytes(value),
            A => value.split('.').map(|part| part.parse().unwrap()).collect(),
            _ => [&[u8::try_from(value.len()).unwrap()], value.as_bytes()].concat(),
        };
        answer.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
        answer.extend(data);
    }
    Some(answer)
}

/// Finds the records of a question, with the CNAMEs that lead to them.
fn found_records(zone: &Zone, name: &str, kind: u16) -> Vec<(String, u16, String)> {
    let mut found = Vec::new();
    let mut at = name.to_owned();
    for _ in 0..8 {
        if let Some(values) = zone.records.get(&(at.clone(), kind)) {
            found.extend(values.iter().map(|value| (at.clone(), kind, value.clone())));
            break;
        }
        let Some(target) = zone.records.get(&(at.clone(), CNAME)) else {
            break;
        };
        found.push((at, CNAME, target[0].clone()));
        at = target[0].clone();
    }
    found
}

/// Reads the name of a question; returns it with the place after it.
fn read_name(message: &[u8]) -> Option<(String, usize)> {
    let (mut labels, mut at) = (Vec::new(), 12);
    loop {
        let length = usize::from(*message.get(at)?);
        at += 1;
        if length == 0 {
            return Some((labels.join("."), at));
        }
        let label = message.get(at..at + length)?;
        labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
        at += length;
    }
}

fn name_bytes(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in name.split('.').filter(|label| !label.is_empty()) {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes
}
