//! Check of sites: each manifest is whole, and its owner has the files that it names; each list of a large file's objects is that of its
//! rows. What is stored under a digest is compared with it elsewhere.

use std::collections::{HashMap, HashSet};

use super::StoreCheckFindings;
use super::store::{self, NamedList, NamedManifest};
use crate::content::{self, ContentStore, Digest, ObjectList};
use crate::control::ControlDatabase;
use crate::deployments::sites::SiteManifest;

/// Files that an owner has, with their lengths, and their lists if they are large.
type OwnedFiles = HashMap<Digest, (u64, Option<Digest>)>;

/// Checks the manifests and the lists that rows name. A server may be at work meanwhile: what does not fit is looked at once more.
///
/// # Errors
/// The database's, or the store's.
pub(super) async fn check(
    control: &ControlDatabase,
    content: &ContentStore,
    found: &mut StoreCheckFindings,
) -> anyhow::Result<()> {
    for owner in control.read(store::file_owners).await? {
        let faults = check_owner(control, content, &owner).await?;
        if !faults.is_empty() {
            found
                .errors
                .extend(check_owner(control, content, &owner).await?);
        }
    }
    for list in control.read(store::named_lists).await? {
        if let Some(fault) = check_list(control, content, &list).await? {
            found.errors.push(fault);
        }
    }
    Ok(())
}

/// Finds what is wrong with the sites of an owner.
async fn check_owner(
    control: &ControlDatabase,
    content: &ContentStore,
    owner: &str,
) -> anyhow::Result<Vec<String>> {
    let named = owner.to_owned();
    let reading = control.read(move |c| {
        // One snapshot: a publication names its files as it gives them to their owner.
        let tx = c.unchecked_transaction()?;
        Ok((
            store::manifests(&tx, &named)?,
            store::lists_of(&tx, &named)?,
        ))
    });
    let (manifests, files) = reading.await?;
    let mut looked_at = HashSet::new();
    let mut faults = Vec::new();
    for manifest in manifests {
        if looked_at.insert((manifest.canonical, manifest.served)) {
            faults.extend(check_manifest(content, &manifest, &files).await?);
        }
    }
    Ok(faults)
}

/// Finds what is wrong with a manifest. One that is missing or damaged is named elsewhere.
async fn check_manifest(
    content: &ContentStore,
    manifest: &NamedManifest,
    files: &OwnedFiles,
) -> anyhow::Result<Vec<String>> {
    let forms = (
        read(content, &manifest.canonical).await?,
        read(content, &manifest.served).await?,
    );
    let (Some(canonical), Some(served)) = forms else {
        return Ok(Vec::new());
    };
    let by = &manifest.by;
    let Some(site) = SiteManifest::from_object(&served) else {
        return Ok(vec![format!("{by}: the manifest is malformed")]);
    };
    let mut faults = Vec::new();
    if site.to_canonical()? != canonical {
        faults.push(format!("{by}: the two forms of the manifest differ"));
    }
    for (path, file) in site.files {
        match files.get(&file.digest) {
            None => faults.push(format!(
                "{by}: nobody has the file `{path}`, {}",
                file.digest
            )),
            Some(has) if *has != (file.bytes, file.list) => {
                faults.push(format!("{by}: the file `{path}` is stored in another way"));
            }
            Some(_) => {}
        }
    }
    Ok(faults)
}

/// Finds what is wrong with the list of a large file.
async fn check_list(
    control: &ControlDatabase,
    content: &ContentStore,
    named: &NamedList,
) -> anyhow::Result<Option<String>> {
    let Some(object) = read(content, &named.list).await? else {
        return Ok(None);
    };
    let digest = named.list;
    let rows = control.read(move |c| store::objects_of(c, &digest)).await?;
    let list = ObjectList::from_object(&object);
    let fits = list.is_some_and(|list| {
        let parts = list.parts(0..list.bytes()).map(|part| part.digest);
        list.bytes() == named.bytes && parts.eq(rows.iter().copied())
    });
    // Without rows the file has ended meanwhile.
    let is_fault = !fits && !rows.is_empty();
    Ok(is_fault.then(|| format!("list {digest}: its objects are not those of its rows")))
}

/// Reads an object; `None` if it is missing or damaged.
async fn read(content: &ContentStore, digest: &Digest) -> anyhow::Result<Option<bytes::Bytes>> {
    match content.get(digest).await {
        Err(content::Error::Damaged(_)) => Ok(None),
        object => Ok(object?),
    }
}
