//! The `svc` command, built for tests that start it as a process.

fn main() -> std::process::ExitCode {
    svc::cli::main()
}
