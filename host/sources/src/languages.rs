//! Which language a file is written in, by its name.

/// Extensions, and the names by which Markdown knows their languages; where the two are one, the extension is not listed.
/// The landing page's form has the same table.
pub const LANGUAGES: &[(&str, &str)] = &[
    ("bat", "batch"),
    ("cc", "cpp"),
    ("cfg", "ini"),
    ("cjs", "javascript"),
    ("clj", "clojure"),
    ("cmd", "batch"),
    ("conf", "ini"),
    ("cs", "csharp"),
    ("cxx", "cpp"),
    ("erl", "erlang"),
    ("ex", "elixir"),
    ("exs", "elixir"),
    ("fs", "fsharp"),
    ("gql", "graphql"),
    ("h", "c"),
    ("hpp", "cpp"),
    ("hs", "haskell"),
    ("jl", "julia"),
    ("js", "javascript"),
    ("jsonl", "json"),
    ("jsx", "javascript"),
    ("kt", "kotlin"),
    ("kts", "kotlin"),
    ("less", "css"),
    ("log", "text"),
    ("m", "objc"),
    ("mjs", "javascript"),
    ("mk", "makefile"),
    ("ml", "ocaml"),
    ("ndjson", "json"),
    ("patch", "diff"),
    ("pl", "perl"),
    ("proto", "protobuf"),
    ("ps1", "powershell"),
    ("py", "python"),
    ("pyi", "python"),
    ("rb", "ruby"),
    ("rs", "rust"),
    ("sass", "scss"),
    ("sh", "bash"),
    ("sol", "solidity"),
    ("svg", "xml"),
    ("tex", "latex"),
    ("tf", "hcl"),
    ("ts", "typescript"),
    ("tsx", "typescript"),
    ("txt", "text"),
    ("vue", "html"),
    ("yml", "yaml"),
    ("zsh", "bash"),
];

/// Files that have no extension, and the names of their languages.
const FILES_WITHOUT_EXTENSION: [&str; 6] = [
    "caddyfile",
    "containerfile",
    "dockerfile",
    "gemfile",
    "justfile",
    "makefile",
];

/// The name of the language that a file is written in; `text` where its name does not say.
pub(super) fn language_by_name(file: &str) -> String {
    let file = file.to_lowercase();
    let Some((_, extension)) = file.rsplit_once('.') else {
        let known = FILES_WITHOUT_EXTENSION.contains(&file.as_str());
        return if known { file } else { "text".to_owned() };
    };
    if let Some((_, name)) = LANGUAGES.iter().find(|(known, _)| *known == extension) {
        return (*name).to_owned();
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '+' || c == '#';
    let sound = (1..=16).contains(&extension.len()) && extension.chars().all(plain);
    if sound { extension } else { "text" }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_the_language() {
        for (file, expected) in [
            ("main.rs", "rust"),
            ("a.b.py", "python"),
            ("Main.JAVA", "java"),
            ("notes.txt", "text"),
            ("Dockerfile", "dockerfile"),
            ("LICENSE", "text"),
            (".bashrc", "bashrc"),
            ("a.", "text"),
            ("a.```", "text"),
            ("a.b c", "text"),
            ("", "text"),
        ] {
            assert_eq!(language_by_name(file), expected, "{file}");
        }
        assert!(LANGUAGES.is_sorted(), "a reader finds an extension");
    }
}
