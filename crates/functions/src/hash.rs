//! `hash`: digests of texts.

use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use setpoint_value::{Module, function};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

pub(crate) static MODULE: Module = Module::new(
    "hash",
    "Digests of texts, in hexadecimal.",
    &[&HMAC_SHA256, &MD5, &SHA1, &SHA256, &SHA512],
);

/// The SHA-256 of bytes, in hexadecimal.
#[function(
    extension,
    example(
        call = r#"hash.sha256("hello")"#,
        result = r#""2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824""#
    )
)]
fn sha256(
    /// Any bytes.
    data: &[u8],
) -> String {
    hexadecimal(&Sha256::digest(data))
}

/// The SHA-512 of bytes, in hexadecimal.
#[function(extension, example(call = r#"len(hash.sha512("hello"))"#, result = "128"))]
fn sha512(
    /// Any bytes.
    data: &[u8],
) -> String {
    hexadecimal(&Sha512::digest(data))
}

/// The SHA-1 of bytes, in hexadecimal. It proves nothing against an attacker.
#[function(
    extension,
    example(
        call = r#"hash.sha1("hello")"#,
        result = r#""aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d""#
    )
)]
fn sha1(
    /// Any bytes.
    data: &[u8],
) -> String {
    hexadecimal(&Sha1::digest(data))
}

/// The MD5 of bytes, in hexadecimal. It proves nothing against an attacker.
#[function(
    extension,
    example(
        call = r#"hash.md5("hello")"#,
        result = r#""5d41402abc4b2a76b9719d911017c592""#
    )
)]
fn md5(
    /// Any bytes.
    data: &[u8],
) -> String {
    hexadecimal(&Md5::digest(data))
}

/// The HMAC of bytes with SHA-256, in hexadecimal (RFC 2104).
#[function(
    extension,
    example(
        call = r#"hash.hmac_sha256("Jefe", "what do ya want for nothing?")"#,
        result = r#""5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843""#
    )
)]
fn hmac_sha256(
    /// The key.
    key: &[u8],
    /// Any bytes.
    data: &[u8],
) -> String {
    let mut keyed = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length fits");
    keyed.update(data);
    hexadecimal(&keyed.finalize().into_bytes())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
