//! The operating system's user who gives a command, for the audit.

/// Returns the name of the system's user, and of the user who became that by `sudo`.
#[allow(
    clippy::disallowed_methods,
    reason = "who the user was is the environment's to say"
)]
pub(super) fn current_actor_name() -> String {
    let id = rustix::process::getuid().as_raw();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = user_name_by_id(&users, id).map_or_else(|| format!("user {id}"), str::to_owned);
    match std::env::var("SUDO_USER") {
        Ok(before) if before != name => format!("{name} ({before} by sudo)"),
        _ => name,
    }
}

/// Finds a user's name in a text of the form of `/etc/passwd`.
fn user_name_by_id(users: &str, id: u32) -> Option<&str> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _, number) = (fields.next()?, fields.next()?, fields.next()?);
        (number.parse() == Ok(id)).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_names() {
        let users =
            "root:x:0:0:root:/root:/bin/bash\nsvc:x:999:999::/nonexistent:/bin/false\n\nbad";
        assert_eq!(user_name_by_id(users, 999), Some("svc"));
        assert_eq!(user_name_by_id(users, 0), Some("root"));
        assert_eq!(user_name_by_id(users, 7), None);
    }
}
