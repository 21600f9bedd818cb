//! Lists the files of the owner's console, so that a new one takes no line of the program.
#![allow(
    clippy::disallowed_methods,
    reason = "a build script's settings are its environment"
)]

use std::error::Error;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

/// Folders of the console whose files are served; what makes them, and says how, lies beside.
const SERVED_FOLDERS: [&str; 2] = ["app", "vendor"];
/// Styles of all screens.
const STYLES: &str = "styles.css";

fn main() -> ExitCode {
    match list_files() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("cargo::error={error}");
            ExitCode::FAILURE
        }
    }
}

/// Writes the list, which `src/console/files.rs` includes: each file's path below the console's folder, and its bytes.
fn list_files() -> Result<(), Box<dyn Error>> {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or("no package")?);
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("no folder for what is made")?);
    let console = package.join("assets/console");
    let mut files = vec![console.join(STYLES)];
    for folder in SERVED_FOLDERS {
        let folder = console.join(folder);
        println!("cargo::rerun-if-changed={}", folder.display());
        collect_scripts(&folder, &mut files)?;
    }
    println!("cargo::rerun-if-changed={}", console.join(STYLES).display());
    files.sort();
    let mut code = String::from("&[\n");
    for file in &files {
        let name = file.strip_prefix(&console)?.to_str();
        let path = file.to_str();
        let (name, path) = name.zip(path).ok_or("the name of a file is no text")?;
        writeln!(code, "    ({name:?}, include_bytes!({path:?}) as &[u8]),")?;
    }
    code.push(']');
    fs::write(out.join("console_files.rs"), code)?;
    Ok(())
}

/// Collects the scripts of a folder and of those in it.
fn collect_scripts(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let extension = path.extension().and_then(OsStr::to_str);
        if path.is_dir() {
            collect_scripts(&path, files)?;
        } else if matches!(extension, Some("js" | "mjs")) {
            files.push(path);
        }
    }
    Ok(())
}
