//! Builds the two guests as WASI components, so that plain `cargo run` and `cargo test` carry them.
#![allow(
    clippy::disallowed_methods,
    reason = "a build script's settings are its environment"
)]

use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs};

use sha2::{Digest as _, Sha256};

/// Target that a component is compiled for.
const TARGET: &str = "wasm32-wasip2";

/// The guests' packages, and the variables by which the host finds their components.
const GUESTS: [(&str, &str); 2] = [
    ("guest-render", "SVC_GUEST_RENDER"),
    ("guest-gate", "SVC_GUEST_GATE"),
];

/// Variables by which the build of the host describes itself, and which must not reach the build of a guest.
const HOST_ONLY: [&str; 9] = [
    "CARGO_ENCODED_RUSTFLAGS",
    "RUSTFLAGS",
    "RUSTC",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "CARGO_BUILD_TARGET",
    "CARGO_TARGET_DIR",
    "MAKEFLAGS",
    "CARGO_MAKEFLAGS",
];

fn main() -> ExitCode {
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("cargo::error={error}");
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), Box<dyn Error>> {
    let package = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let workspace = package
        .ancestors()
        .nth(2)
        .ok_or("the package does not lie in the workspace")?
        .to_owned();
    let out = PathBuf::from(variable("OUT_DIR")?);
    let target_dir = workspace_target(&out)?.join("guests");

    for watched in [
        "guest-render",
        "guest-gate",
        "wit",
        "Cargo.lock",
        "Cargo.toml",
    ] {
        println!(
            "cargo::rerun-if-changed={}",
            workspace.join(watched).display()
        );
    }
    println!("cargo::rerun-if-changed=build.rs");

    ensure_target(&workspace)?;
    let mut cargo = clean(variable("CARGO")?);
    cargo
        .current_dir(&workspace)
        .args(["build", "--locked", "--profile", "guest", "--target"])
        .arg(TARGET)
        .arg("--target-dir")
        .arg(&target_dir);
    for (package, _) in GUESTS {
        cargo.args(["--package", package]);
    }
    if !cargo.status()?.success() {
        return Err("a guest does not compile: its errors stand above".into());
    }

    for (package, name) in GUESTS {
        let file = format!("{}.wasm", package.replace('-', "_"));
        let built = target_dir.join(TARGET).join("guest").join(&file);
        let embedded = out.join(&file);
        copy_if_changed(&built, &embedded)?;
        println!("cargo::rustc-env={name}={}", embedded.display());
        let digest = embedded.with_extension("sha256");
        fs::write(&digest, Sha256::digest(fs::read(&embedded)?))?;
        println!("cargo::rustc-env={name}_DIGEST={}", digest.display());
    }
    Ok(())
}

/// Reads a variable that cargo sets for build scripts.
fn variable(name: &str) -> Result<OsString, Box<dyn Error>> {
    env::var_os(name).ok_or_else(|| format!("{name} is not set: is this run by cargo?").into())
}

/// Returns the folder that holds the folders of profiles: `OUT_DIR` is `<target>[/<triple>]/<profile>/build/<package>/out`.
fn workspace_target(out: &Path) -> Result<&Path, Box<dyn Error>> {
    let root = out
        .ancestors()
        .find(|folder| folder.ends_with("build"))
        .and_then(|build| build.parent()?.parent())
        .ok_or_else(|| format!("{} does not lie in a target folder", out.display()))?;
    // Builds for a named target have a folder of their own; the guests are the same for all of them.
    let triple = env::var_os("TARGET").unwrap_or_default();
    if root.file_name() == Some(&triple) {
        Ok(root.parent().unwrap_or(root))
    } else {
        Ok(root)
    }
}

/// Makes a command without the variables of the host's build.
fn clean(program: impl Into<OsString>) -> Command {
    let mut command = Command::new(program.into());
    for name in HOST_ONLY {
        command.env_remove(name);
    }
    command
}

/// Installs the guests' compilation target where it is missing.
fn ensure_target(workspace: &Path) -> Result<(), Box<dyn Error>> {
    if has_target(workspace)? {
        return Ok(());
    }
    let added = clean("rustup")
        .current_dir(workspace)
        .args(["target", "add", TARGET])
        .status();
    if added.is_ok_and(|status| status.success()) && has_target(workspace)? {
        return Ok(());
    }
    Err(format!(
        "the guests need Rust's {TARGET} target, which is not installed and could not be added: \
         run `rustup target add {TARGET}` with a network, or install it as your system installs Rust"
    )
    .into())
}

fn has_target(workspace: &Path) -> Result<bool, Box<dyn Error>> {
    let output = Command::new(variable("RUSTC")?)
        .current_dir(workspace)
        .args(["--print", "target-libdir", "--target", TARGET])
        .stderr(Stdio::inherit())
        .output()?;
    let libraries = String::from_utf8(output.stdout)?;
    Ok(output.status.success() && Path::new(libraries.trim()).is_dir())
}

/// Copies a file unless the copy is equal: an unchanged modification time avoids a rebuild.
fn copy_if_changed(from: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    let new = fs::read(from).map_err(|error| format!("cannot read {}: {error}", from.display()))?;
    if fs::read(to).is_ok_and(|old| old == new) {
        return Ok(());
    }
    fs::write(to, new).map_err(|error| format!("cannot write {}: {error}", to.display()).into())
}
