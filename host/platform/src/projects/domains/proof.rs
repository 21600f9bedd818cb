//! The proof that a domain is a project's: which records are wanted, and which of those that are there prove it.

use ring::hmac;

use super::dns::DnsRecord;
use super::name::is_apex;
use svc_base::base32;
use svc_base::ids::ProjectId;

/// Begin of the label that a CNAME leads to.
const LABEL_PREFIX: &str = "d-";
/// Begin of the text of a TXT record.
const TEXT_PREFIX: &str = "svc-domain=";

/// Makes the proofs of an installation.
#[derive(Clone, Debug)]
pub(super) struct ProofMaker {
    key: hmac::Key,
    /// Domain of projects' origins, without a port.
    sites: String,
}

/// The proof of one project's domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Proof {
    target: String,
    text: String,
}

impl ProofMaker {
    pub(super) fn new(key: hmac::Key, sites: String) -> Self {
        Self { key, sites }
    }

    /// Returns the proof that belongs to a project and a name for ever.
    pub(super) fn of(&self, project: &ProjectId, name: &str) -> Proof {
        let signed = hmac::sign(&self.key, format!("{project} {name}").as_bytes());
        let begin = signed.as_ref().first_chunk().copied().unwrap_or_default();
        let characters = base32::encode(u128::from_be_bytes(begin));
        Proof {
            target: format!("{LABEL_PREFIX}{characters}.{}", self.sites),
            text: format!("{TEXT_PREFIX}{characters}"),
        }
    }

    /// Whether a host lies below the domain of projects' origins, so that no hop after it matters.
    pub(super) fn is_ours(&self, host: &str) -> bool {
        let label = host.strip_suffix(&self.sites);
        label.is_some_and(|label| label.ends_with('.'))
    }
}

impl Proof {
    /// Returns the records by which a name is proven, the best first: one of them suffices.
    pub(super) fn wanted(&self, name: &str) -> Vec<DnsRecord> {
        let cname = DnsRecord::cname(name, self.target.clone());
        let text = DnsRecord::txt(name, self.text.clone());
        match is_apex(name) {
            true => vec![text],
            false => vec![cname, text],
        }
    }

    /// Whether one of some records proves it.
    pub(super) fn is_in(&self, seen: &[DnsRecord]) -> bool {
        seen.iter().any(|record| match record.kind {
            "CNAME" => record.value == self.target,
            _ => record
                .value
                .trim()
                .trim_matches('"')
                .eq_ignore_ascii_case(&self.text),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_base::clock::{Clock, Timestamp};
    use svc_base::random::Random;

    #[test]
    fn a_proof_is_of_one_project_one_name_and_one_installation() {
        let (clock, random) = (Clock::manual(Timestamp(0)), Random::system());
        let projects = [0, 1].map(|_| ProjectId::new(&clock, &random).unwrap());
        let maker = |secret: &[u8]| {
            let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
            ProofMaker::new(key, "pages.svc.net".to_owned())
        };
        let (ours, other) = (maker(b"ours"), maker(b"other"));
        let proof = ours.of(&projects[0], "www.shop.com");
        assert_eq!(proof, ours.of(&projects[0], "www.shop.com"));
        assert_ne!(proof, ours.of(&projects[1], "www.shop.com"));
        assert_ne!(proof, ours.of(&projects[0], "shop.com"));
        assert_ne!(proof, other.of(&projects[0], "www.shop.com"));
        let characters = proof.text.strip_prefix("svc-domain=").unwrap();
        assert_eq!(characters.len(), 26);
        let is_label = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
        assert!(characters.bytes().all(is_label));
        assert_eq!(proof.target, format!("d-{characters}.pages.svc.net"));
        assert_eq!(proof.wanted("www.shop.com").len(), 2);
        assert_eq!(proof.wanted("shop.com")[0].kind, "TXT");
        for (seen, proven) in [
            (proof.wanted("www.shop.com")[0].clone(), true),
            (proof.wanted("www.shop.com")[1].clone(), true),
            (
                DnsRecord::txt("shop.com", format!(" \"{}\" ", proof.text.to_uppercase())),
                true,
            ),
            (DnsRecord::txt("shop.com", characters.to_owned()), false),
            (DnsRecord::txt("shop.com", proof.target.clone()), false),
            (
                DnsRecord::cname("www.shop.com", "pages.svc.net".to_owned()),
                false,
            ),
        ] {
            assert_eq!(proof.is_in(std::slice::from_ref(&seen)), proven, "{seen:?}");
        }
        assert!(ours.is_ours(&proof.target));
        assert!(!ours.is_ours("pages.svc.net") && !ours.is_ours("notpages.svc.net"));
    }
}
