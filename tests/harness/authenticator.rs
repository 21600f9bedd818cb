//! A device with passkeys in software, which may lie, and the pages that ask for them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
    RsaKeyPair,
};
use serde_json::{Value, json};

/// Key of a test alone: ring makes none of this kind.
const RSA_KEY: &[u8] = include_bytes!("authenticator_rsa.pk8");
/// User present, user verified.
const HONEST_FLAGS: u8 = 0x05;
/// Attested credential data.
const WITH_KEY: u8 = 0x40;

/// Algorithm of a passkey.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PasskeyAlgorithm {
    /// ECDSA over P-256.
    #[default]
    Es256,
    /// EdDSA over Curve25519.
    EdDsa,
    /// RSA with PKCS#1 padding.
    Rs256,
}

/// Untruths of a device; the default has none.
#[derive(Clone, Debug, Default)]
pub struct PasskeyLies {
    /// Origin of another page.
    pub origin: Option<String>,
    /// RP ID of another host.
    pub rp_id: Option<String>,
    /// Kind of another ceremony.
    pub kind: Option<&'static str>,
    /// Challenge of somebody else.
    pub challenge: Option<String>,
    /// Account of somebody else.
    pub user_handle: Option<String>,
    /// Flags without user verification, or without presence.
    pub flags: Option<u8>,
    /// Number of signatures.
    pub counter: Option<u32>,
    /// Number of an algorithm that was not asked for.
    pub algorithm: Option<i64>,
    /// Whether the page was in a frame of another origin.
    pub is_framed: bool,
    /// Whether the signature has a wrong bit.
    pub is_forged: bool,
}

/// Passkey of the device.
struct DevicePasskey {
    id: Vec<u8>,
    handle: String,
    key: DeviceKey,
}

enum DeviceKey {
    Es256(EcdsaKeyPair),
    EdDsa(Ed25519KeyPair),
    Rs256(RsaKeyPair),
}

/// The device.
#[derive(Default)]
pub struct Authenticator {
    passkeys: Vec<DevicePasskey>,
    /// Algorithm of new passkeys.
    pub algorithm: PasskeyAlgorithm,
    /// Untruths of the next answers.
    pub lies: PasskeyLies,
    /// Number of signatures, if the device counts them.
    pub counter: u32,
}

/// Prompt on a page of the server.
#[derive(Clone, Debug)]
pub struct PasskeyPrompt {
    /// Options of the browser's call.
    pub options: Value,
    /// Sealed challenge, which goes back.
    pub challenge: String,
}

impl PasskeyPrompt {
    /// Finds a prompt of a page: in its form for `create` or `get`.
    ///
    /// # Panics
    /// When the page has none.
    pub fn find(page: &str, kind: &str) -> Self {
        let form = page.split("<form").find(|form| {
            let head = form.split('>').next().unwrap();
            head.contains(&format!("data-passkey=\"{kind}\""))
        });
        let form = form.expect("a form for passkeys");
        let between = |before: &str| {
            let rest = form.split_once(before).expect(before).1;
            rest.split('"').next().unwrap().to_owned()
        };
        let options = between("data-options=\"").replace("&quot;", "\"");
        let options = options.replace("&lt;", "<").replace("&gt;", ">");
        Self {
            options: serde_json::from_str(&options.replace("&amp;", "&")).unwrap(),
            challenge: between("name=\"challenge\" value=\""),
        }
    }

    /// Returns the form with an answer.
    pub fn form(&self, name: Option<&str>, credential: &str) -> String {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        if let Some(name) = name {
            form.append_pair("name", name);
        }
        form.append_pair("challenge", &self.challenge);
        form.append_pair("credential", credential);
        form.finish()
    }
}

impl DeviceKey {
    fn generate(algorithm: PasskeyAlgorithm) -> Self {
        let random = SystemRandom::new();
        match algorithm {
            PasskeyAlgorithm::Es256 => {
                let kind = &ECDSA_P256_SHA256_ASN1_SIGNING;
                let key = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
                Self::Es256(EcdsaKeyPair::from_pkcs8(kind, key.as_ref(), &random).unwrap())
            }
            PasskeyAlgorithm::EdDsa => {
                let key = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
                Self::EdDsa(Ed25519KeyPair::from_pkcs8(key.as_ref()).unwrap())
            }
            PasskeyAlgorithm::Rs256 => Self::Rs256(RsaKeyPair::from_pkcs8(RSA_KEY).unwrap()),
        }
    }

    /// Returns the key in the form of COSE, with another number of its algorithm if one is given.
    fn cose(&self, algorithm: Option<i64>) -> Vec<u8> {
        let mut out = Vec::new();
        let begin = |out: &mut Vec<u8>, length: u64, kind: i64, own: i64| {
            write_head(out, 5, length);
            write_integer(out, 1);
            write_integer(out, kind);
            write_integer(out, 3);
            write_integer(out, algorithm.unwrap_or(own));
        };
        match self {
            Self::Es256(key) => {
                let point = key.public_key().as_ref();
                begin(&mut out, 5, 2, -7);
                write_integer(&mut out, -1);
                write_integer(&mut out, 1);
                write_integer(&mut out, -2);
                write_bytes(&mut out, &point[1..33]);
                write_integer(&mut out, -3);
                write_bytes(&mut out, &point[33..]);
            }
            Self::EdDsa(key) => {
                begin(&mut out, 4, 1, -8);
                write_integer(&mut out, -1);
                write_integer(&mut out, 6);
                write_integer(&mut out, -2);
                write_bytes(&mut out, key.public_key().as_ref());
            }
            Self::Rs256(key) => {
                let parts = PublicKeyComponents::<Vec<u8>>::from(key.public());
                begin(&mut out, 4, 3, -257);
                write_integer(&mut out, -1);
                write_bytes(&mut out, &parts.n);
                write_integer(&mut out, -2);
                write_bytes(&mut out, &parts.e);
            }
        }
        out
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Es256(key) => key.sign(&random, message).unwrap().as_ref().to_vec(),
            Self::EdDsa(key) => key.sign(message).as_ref().to_vec(),
            Self::Rs256(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)
                    .unwrap();
                signature
            }
        }
    }
}

impl Authenticator {
    /// Makes a device whose new passkeys have an algorithm.
    pub fn with_algorithm(algorithm: PasskeyAlgorithm) -> Self {
        Self {
            algorithm,
            ..Self::default()
        }
    }

    /// Makes a device that has signed so often.
    pub fn with_counter(counter: u32) -> Self {
        Self {
            counter,
            ..Self::default()
        }
    }

    /// Makes a device that lies.
    pub fn with_lies(lies: PasskeyLies) -> Self {
        Self {
            lies,
            ..Self::default()
        }
    }

    /// Makes a passkey on a page of `origin`; returns the credential as JSON.
    ///
    /// # Panics
    /// When the device has a passkey that is excluded.
    pub fn create(&mut self, options: &Value, origin: &str) -> String {
        for excluded in options["excludeCredentials"].as_array().unwrap() {
            let has = |one: &DevicePasskey| encode(&one.id) == excluded["id"].as_str().unwrap();
            assert!(!self.passkeys.iter().any(has), "it has one already");
        }
        let number = u8::try_from(self.passkeys.len()).unwrap();
        let id = digest(&SHA256, options.to_string().as_bytes());
        let id = [id.as_ref(), &[number]].concat();
        let key = DeviceKey::generate(self.algorithm);
        let data = self.client_data("webauthn.create", options, origin);
        let rp_id = options["rp"]["id"].as_str().unwrap();
        let mut authenticator_data = self.authenticator_data(rp_id, WITH_KEY);
        authenticator_data.extend([0; 16]);
        authenticator_data.extend(u16::try_from(id.len()).unwrap().to_be_bytes());
        authenticator_data.extend(&id);
        authenticator_data.extend(key.cose(self.lies.algorithm));
        let mut attestation = Vec::new();
        write_head(&mut attestation, 5, 3);
        write_text(&mut attestation, "fmt");
        write_text(&mut attestation, "none");
        write_text(&mut attestation, "attStmt");
        write_head(&mut attestation, 5, 0);
        write_text(&mut attestation, "authData");
        write_bytes(&mut attestation, &authenticator_data);
        let credential = json!({
            "rawId": encode(&id),
            "response": {
                "clientDataJSON": encode(data.as_bytes()),
                "attestationObject": encode(&attestation),
            },
        });
        self.passkeys.push(DevicePasskey {
            id,
            handle: options["user"]["id"].as_str().unwrap().to_owned(),
            key,
        });
        credential.to_string()
    }

    /// Signs with the newest passkey on a page of `origin`; returns the credential as JSON.
    ///
    /// # Panics
    /// When the device has no passkey.
    pub fn get(&mut self, options: &Value, origin: &str) -> String {
        if self.counter > 0 {
            self.counter += 1;
        }
        let data = self.client_data("webauthn.get", options, origin);
        let authenticator_data = self.authenticator_data(options["rpId"].as_str().unwrap(), 0);
        let passkey = self.passkeys.last().expect("a passkey");
        let hash = digest(&SHA256, data.as_bytes());
        let signed = [authenticator_data.as_slice(), hash.as_ref()].concat();
        let mut signature = passkey.key.sign(&signed);
        if self.lies.is_forged {
            *signature.last_mut().unwrap() ^= 1;
        }
        let handle = self.lies.user_handle.as_ref().unwrap_or(&passkey.handle);
        let credential = json!({
            "rawId": encode(&passkey.id),
            "response": {
                "clientDataJSON": encode(data.as_bytes()),
                "authenticatorData": encode(&authenticator_data),
                "signature": encode(&signature),
                "userHandle": handle,
            },
        });
        credential.to_string()
    }

    fn client_data(&self, kind: &str, options: &Value, origin: &str) -> String {
        let lies = &self.lies;
        let challenge = options["challenge"].as_str().unwrap();
        let data = json!({
            "type": lies.kind.unwrap_or(kind),
            "challenge": lies.challenge.as_deref().unwrap_or(challenge),
            "origin": lies.origin.as_deref().unwrap_or(origin),
            "crossOrigin": lies.is_framed,
        });
        data.to_string()
    }

    fn authenticator_data(&self, rp_id: &str, more_flags: u8) -> Vec<u8> {
        let rp_id = self.lies.rp_id.as_deref().unwrap_or(rp_id);
        let flags = self.lies.flags.unwrap_or(HONEST_FLAGS) | more_flags;
        let counter = self.lies.counter.unwrap_or(self.counter);
        let hash = digest(&SHA256, rp_id.as_bytes());
        [hash.as_ref(), &[flags], &counter.to_be_bytes()].concat()
    }
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Writes the head of a CBOR value (RFC 8949, section 3).
fn write_head(out: &mut Vec<u8>, major: u8, argument: u64) {
    let kind = major << 5;
    match (u8::try_from(argument), u16::try_from(argument)) {
        (Ok(short), _) if short < 24 => out.push(kind | short),
        (Ok(byte), _) => out.extend([kind | 24, byte]),
        (_, Ok(number)) => {
            out.push(kind | 25);
            out.extend(number.to_be_bytes());
        }
        _ => panic!("a test has nothing as large: {argument}"),
    }
}

fn write_integer(out: &mut Vec<u8>, number: i64) {
    match u64::try_from(number) {
        Ok(number) => write_head(out, 0, number),
        Err(_) => write_head(out, 1, (-1 - number).unsigned_abs()),
    }
}

fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    write_head(out, 2, bytes.len() as u64);
    out.extend(bytes);
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    write_head(out, 3, text.len() as u64);
    out.extend(text.as_bytes());
}
