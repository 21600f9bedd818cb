//! The `svc` command.

fn main() -> std::process::ExitCode {
    svc::cli::main()
}
