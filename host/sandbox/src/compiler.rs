//! Compiles components, in a process of their own where there is a program for it.
//!
//! A compiler takes 600 MB for the renderer, and no allocator gives all of that back: here the system does, when the process ends. Where
//! memory runs out, the kernel ends the largest process, which is then that one.

use std::io::{self, Read as _, Write};
use std::os::unix::process::CommandExt as _;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, bail};

use super::engine::compiler_engine;

/// Subcommand by which a program compiles: it calls [`compile_from_stdin`].
pub const COMPILE_COMMAND: &str = "compile-guest";

/// Optimisation level of compiled code. Fuel, memory, time and stack are bounded equally in both.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OptimizationTier {
    /// Code that is compiled fast, for a server that has no code yet.
    Baseline,
    /// Code that runs fast.
    Optimised,
}

impl OptimizationTier {
    /// All tiers.
    pub const ALL: [Self; 2] = [Self::Baseline, Self::Optimised];

    /// Returns the tier's name, as logs and command lines have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Optimised => "optimised",
        }
    }
}

/// Number of cores that a compilation uses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum CompilerCores {
    /// All: somebody waits for it.
    All,
    /// One: it is background work.
    One,
}

/// Compiler of components.
#[derive(Clone, Debug)]
pub(super) struct GuestCompiler {
    /// The program that compiles; without one, this process does.
    program: Option<PathBuf>,
}

impl GuestCompiler {
    pub(super) fn new(program: Option<PathBuf>) -> Self {
        Self { program }
    }

    /// Compiles a component. Blocks.
    ///
    /// # Errors
    /// The component does not compile, or the compiler was ended.
    pub(super) fn compile(
        &self,
        (tier, cores): (OptimizationTier, CompilerCores),
        component: &[u8],
    ) -> anyhow::Result<Vec<u8>> {
        let Some(program) = &self.program else {
            return compile_here((tier, cores), component);
        };
        let mut command = Command::new(program);
        command.arg(COMPILE_COMMAND).arg(tier.as_str());
        if cores == CompilerCores::One {
            command.arg("--one-core");
        }
        match run(&mut command, component) {
            Ok(output) => code_of(output),
            Err(error) => {
                tracing::warn!(%error, "the program that compiles cannot be run: the server compiles itself");
                compile_here((tier, cores), component)
            }
        }
    }
}

/// Runs a compiler's process to its end. It sees nothing of the environment, which may have secrets, and no key that is meant for the
/// server ends it.
fn run(command: &mut Command, component: &[u8]) -> io::Result<Output> {
    let pipes = command
        .env_clear()
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut process = pipes.spawn()?;
    if let Some(mut input) = process.stdin.take() {
        // A process that has ended says why.
        let _ = input.write_all(component);
    }
    process.wait_with_output()
}

/// Returns the code that a compiler's process has written, or its reason for having none.
fn code_of(output: Output) -> anyhow::Result<Vec<u8>> {
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().unwrap_or_default();
    match output.status.code() {
        Some(_) => bail!("{}", last.strip_prefix("error: ").unwrap_or(last)),
        // As a rule the system had no memory left.
        None => bail!("the compiler was ended ({})", output.status),
    }
}

/// Compiles in this process.
fn compile_here(
    (tier, cores): (OptimizationTier, CompilerCores),
    component: &[u8],
) -> anyhow::Result<Vec<u8>> {
    let engine = compiler_engine(tier, cores)?;
    catch_compiler_panic(|| Ok(engine.precompile_component(component)?))
}

/// Runs a compiler, and turns its panic on a strange component into an error.
fn catch_compiler_panic(
    compile: impl FnOnce() -> anyhow::Result<Vec<u8>>,
) -> anyhow::Result<Vec<u8>> {
    // The compiler keeps no state between components that a panic could damage.
    panic::catch_unwind(AssertUnwindSafe(compile))
        .unwrap_or_else(|_| bail!("the compiler gave up on it"))
}

/// Compiles the component on standard input, and writes its code to standard output: what [`COMPILE_COMMAND`] does.
///
/// # Errors
/// The component does not compile, or a stream fails.
pub fn compile_from_stdin(tier: OptimizationTier, one_core: bool) -> anyhow::Result<()> {
    let mut component = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut component);
    read.context("reading the component")?;
    let cores = match one_core {
        true => CompilerCores::One,
        false => CompilerCores::All,
    };
    let code = compile_here((tier, cores), &component)?;
    let mut out = io::stdout().lock();
    let written = out.write_all(&code).and_then(|()| out.flush());
    written.context("writing the code")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component() -> Vec<u8> {
        wat::parse_str("(component)").unwrap()
    }

    /// Compiles by a shell script in place of the program.
    fn compile_by(script: &str) -> anyhow::Result<Vec<u8>> {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(script);
        code_of(run(&mut command, &component())?)
    }

    #[test]
    fn a_compiler_that_panics_is_an_error() {
        let error = catch_compiler_panic(|| panic!("on purpose")).unwrap_err();
        assert!(error.to_string().contains("gave up"), "{error:#}");
        assert_eq!(catch_compiler_panic(|| Ok(vec![7])).unwrap(), [7]);
    }

    #[test]
    fn a_process_gets_the_component_and_nothing_of_the_environment() {
        assert_eq!(compile_by("/bin/cat").unwrap(), component());
        let environment = String::from_utf8(compile_by("/usr/bin/env").unwrap()).unwrap();
        assert!(!environment.contains("CARGO"), "{environment}");
    }

    #[test]
    fn a_process_without_code_says_why() {
        let refused =
            compile_by("echo 'thread panicked' >&2; echo 'error: no such instruction' >&2; exit 1")
                .unwrap_err();
        assert_eq!(refused.to_string(), "no such instruction");
        let killed = compile_by("kill -9 $$").unwrap_err().to_string();
        assert!(killed.contains("the compiler was ended"), "{killed}");
    }

    #[test]
    fn without_its_program_the_server_compiles_itself() {
        let job = (OptimizationTier::Optimised, CompilerCores::One);
        let missing = GuestCompiler::new(Some(PathBuf::from("/nowhere")));
        let here = GuestCompiler::new(None);
        let code = here.compile(job, &component()).unwrap();
        assert_eq!(missing.compile(job, &component()).unwrap(), code);
        assert!(here.compile(job, b"nothing").is_err());
    }
}
