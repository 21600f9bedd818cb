//! Templates of `svc init`: folders with pages, a database and actions, which work as they are.

/// Text of `.gitignore`.
pub(super) const GITIGNORE: &str =
    "# Data of `svc dev`, and what `svc apply` and `svc pull` remember.\n.svc/\n";
/// Stands for the project's name in the manifest of a template, as TOML has it.
const PROJECT_PLACEHOLDER: &str = "\"PROJECT\"";

/// A template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum FolderTemplate {
    /// One page.
    #[default]
    Blank,
    /// A page where visitors leave a few words, which all others see at once.
    GuestBook,
    /// Cards in columns for people who sign in, and who is here.
    Board,
    /// An album to which visitors who sign in add their pictures.
    Pictures,
    /// A form, and a page with what was answered.
    Survey,
    /// Pages of documents with diagrams.
    Docs,
}

/// Files of a template by their names, put together from its folder.
macro_rules! template_files {
    ($folder:literal: $($name:literal)+) => {
        &[$(($name, include_str!(concat!("../../templates/", $folder, "/", $name)))),+]
    };
}

const BLANK: &[(&str, &str)] = template_files!("blank": "svc.toml" "index.html" "README.md");
const GUEST_BOOK: &[(&str, &str)] = template_files!(
    "guest-book": "svc.toml" "book.html" "migrations/0001_entries.sql" "actions/latest.sql" "actions/sign.sql" "README.md"
);
const BOARD: &[(&str, &str)] = template_files!(
    "board": "svc.toml" "board.html" "migrations/0001_cards.sql" "actions/cards.sql" "actions/add_card.sql"
    "actions/move_card.sql" "actions/rename_card.sql" "actions/remove_card.sql" "README.md"
);
const PICTURES: &[(&str, &str)] = template_files!(
    "pictures": "svc.toml" "pictures.html" "migrations/0001_photos.sql" "actions/add.sql" "actions/latest.sql"
    "actions/mine.sql" "actions/remove.sql" "actions/see.sql" "README.md"
);
const SURVEY: &[(&str, &str)] = template_files!(
    "survey": "svc.toml" "survey.html" "results.html" "migrations/0001_answers.sql" "actions/answer.sql"
    "actions/counts.sql" "actions/summary.sql" "actions/comments.sql" "README.md"
);
const DOCS: &[(&str, &str)] = template_files!(
    "docs": "svc.toml" "index.md" "getting-started.md" "architecture.md" "faq.md" "README.md"
);

impl FolderTemplate {
    /// Returns the name of the template on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Blank => "blank",
            Self::GuestBook => "guest-book",
            Self::Board => "board",
            Self::Pictures => "pictures",
            Self::Survey => "survey",
            Self::Docs => "docs",
        }
    }

    /// Returns the files for a project of a name.
    pub(super) fn files(self, project: &str) -> Vec<(&'static str, String)> {
        let files = match self {
            Self::Blank => BLANK,
            Self::GuestBook => GUEST_BOOK,
            Self::Board => BOARD,
            Self::Pictures => PICTURES,
            Self::Survey => SURVEY,
            Self::Docs => DOCS,
        };
        let name = toml::Value::from(project).to_string();
        let files = files
            .iter()
            .map(|(file, text)| (*file, text.replace(PROJECT_PLACEHOLDER, &name)));
        files.collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;
    use crate::files::DirectoryHandle;
    use crate::manifest::{AcceptedOwners, ProjectFolder};

    #[test]
    fn a_template_is_a_folder_with_the_projects_name() {
        for template in FolderTemplate::value_variants() {
            let folder = tempfile::tempdir().unwrap();
            let handle = DirectoryHandle::open(folder.path()).unwrap();
            let name = "A \"name\" \\ of\nmine";
            for (file, text) in template.files(name) {
                handle.write(file.as_ref(), text.as_bytes(), false).unwrap();
            }
            let read = ProjectFolder::read(&handle, AcceptedOwners::ALL).unwrap();
            assert_eq!(read.manifest.project, name, "{}", template.name());
            let possible = template.to_possible_value().unwrap();
            assert_eq!(possible.get_name(), template.name());
        }
    }

    /// Words of visitors come into a page by the DOM alone, and nothing comes from another host.
    #[test]
    fn a_template_trusts_no_visitor_and_no_other_host() {
        for template in FolderTemplate::value_variants() {
            for (file, text) in template.files("P") {
                for refused in [
                    "innerHTML",
                    "outerHTML",
                    "insertAdjacentHTML",
                    "document.write",
                    "eval(",
                ] {
                    assert!(
                        !text.contains(refused),
                        "{} {file} {refused}",
                        template.name()
                    );
                }
                let is_page = file.ends_with(".html");
                assert!(!is_page || !text.contains("https://"), "{file}");
            }
        }
    }
}
