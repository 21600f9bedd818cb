//! The cryptography of tokens: ring, as everywhere else. `jsonwebtoken` calls it through these adapters, which support public keys,
//! and ES256 for signing.

use std::sync::OnceLock;

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result, new_error};
use jsonwebtoken::signature::{Error, Signer, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::rand::SystemRandom;
use ring::signature::{self as ring_signature, EcdsaKeyPair, RsaPublicKeyComponents};

static CRYPTO_PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: signer,
    verifier_factory: verifier,
    // Key conversion is not needed.
    key_utils: KeyUtils::new_unimplemented(),
};

/// Installs ring as the provider of the process, once.
pub(super) fn install_ring_provider() {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        // Fails if another provider is installed: no other code of this process uses the library.
        let _ = CRYPTO_PROVIDER.install_default();
    });
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    // No HMAC algorithm: a public key taken as a shared secret would let anybody sign.
    let scheme: RingVerificationParams = match algorithm {
        Algorithm::RS256 => {
            RingVerificationParams::Rsa(&ring_signature::RSA_PKCS1_2048_8192_SHA256)
        }
        Algorithm::RS384 => {
            RingVerificationParams::Rsa(&ring_signature::RSA_PKCS1_2048_8192_SHA384)
        }
        Algorithm::RS512 => {
            RingVerificationParams::Rsa(&ring_signature::RSA_PKCS1_2048_8192_SHA512)
        }
        Algorithm::PS256 => RingVerificationParams::Rsa(&ring_signature::RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => RingVerificationParams::Rsa(&ring_signature::RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => RingVerificationParams::Rsa(&ring_signature::RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 => RingVerificationParams::Other(&ring_signature::ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => RingVerificationParams::Other(&ring_signature::ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => RingVerificationParams::Other(&ring_signature::ED25519),
        _ => return Err(new_error(ErrorKind::UnsupportedAlgorithm)),
    };
    if key.family() != algorithm.family() {
        return Err(new_error(ErrorKind::InvalidAlgorithm));
    }
    Ok(Box::new(RingVerifier {
        algorithm: *algorithm,
        scheme,
        key: key.clone(),
    }))
}

/// Parameters with which ring verifies a signature algorithm.
enum RingVerificationParams {
    Rsa(&'static ring_signature::RsaParameters),
    Other(&'static dyn ring_signature::VerificationAlgorithm),
}

struct RingVerifier {
    algorithm: Algorithm,
    scheme: RingVerificationParams,
    key: DecodingKey,
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signed: &Vec<u8>) -> std::result::Result<(), Error> {
        let verified = match (&self.scheme, self.key.kind()) {
            (RingVerificationParams::Rsa(scheme), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                let (n, e) = (strip_leading_zeros(n), strip_leading_zeros(e));
                RsaPublicKeyComponents { n, e }.verify(scheme, message, signed)
            }
            (RingVerificationParams::Other(scheme), DecodingKeyKind::SecretOrDer(point)) => {
                ring_signature::UnparsedPublicKey::new(*scheme, point).verify(message, signed)
            }
            _ => return Err(Error::new()),
        };
        verified.map_err(|_| Error::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

/// Strips leading zeros, which some issuers write and ring refuses.
fn strip_leading_zeros(number: &[u8]) -> &[u8] {
    let first = number.iter().position(|byte| *byte != 0);
    &number[first.unwrap_or(number.len())..]
}

fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    if *algorithm != Algorithm::ES256 || key.family() != AlgorithmFamily::Ec {
        return Err(new_error(ErrorKind::UnsupportedAlgorithm));
    }
    let random = SystemRandom::new();
    let scheme = &ring_signature::ECDSA_P256_SHA256_FIXED_SIGNING;
    let pair = EcdsaKeyPair::from_pkcs8(scheme, key.as_bytes(), &random)
        .map_err(|_| new_error(ErrorKind::InvalidEcdsaKey))?;
    Ok(Box::new(RingSigner { pair, random }))
}

struct RingSigner {
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

impl Signer<Vec<u8>> for RingSigner {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, Error> {
        let signed = self.pair.sign(&self.random, message);
        signed
            .map(|signed| signed.as_ref().to_vec())
            .map_err(|_| Error::new())
    }
}

impl JwtSigner for RingSigner {
    fn algorithm(&self) -> Algorithm {
        Algorithm::ES256
    }
}
