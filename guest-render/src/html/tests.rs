//! Where the runtime script goes, and that nothing else changes.

use crate::tests::source;
use crate::{RuntimeScript, render};

const SCRIPT: &str = "<script src=\"/_svc/runtime/1.js\" data-slug=\"s&amp;&quot;\"></script>";

fn with_runtime(text: &str) -> String {
    let mut source = source("html", text);
    let slug = "s&\"".to_owned();
    source.runtime = Some(RuntimeScript {
        src: "/_svc/runtime/1.js".to_owned(),
        slug,
    });
    render(&source).unwrap().html
}

/// In each document, `^` marks the place.
#[test]
fn the_script_finds_its_place() {
    for marked in [
        "<!doctype html><html><head>^<title>x</title></head><body></body></html>",
        "<!DOCTYPE html>\n<HTML lang=en>\n<HEAD data-a='>' data-b=\">\" c>^\n</HEAD>",
        "<html data-x=\"<head>\">^<body><head>",
        "<html lang=en\n>^<title>x</title><head>",
        "<html/>^<p>",
        "<head/>^<p>",
        "<!doctype html>^<title>x</title><html><head>",
        "<!doctype html>^\n<header>x</header><head>",
        "<!doctype html>^<body><head></head></body>",
        "<!doctype html>^text<head>",
        "<!doctype html>^<script>\"<head>\"</script><head>",
        "<!doctype html>^<template><head></template>",
        "<!doctype html>^<svg><head>",
        "<!doctype html>^",
        "<!doctype html public \"a>^b\" '<head>'>x",
        "<!-- <head> --><!doctype html><!-- <html> --><html><!-- <head> --><head>^",
        "\u{feff}<!doctype html>^x",
        "\u{feff}^x",
        "\u{feff}  \r\n<!-- é -->\r\n<!doctype html>\r\n<html>\r\n<head é='ü&gt;'>^\r\n",
        "<html><!doctype html><head>^",
        "<html></p><head>^",
        "<html>^</body><head>",
        "^</p><!doctype html>x",
        "<html a>^<html b>x",
        "^",
        "^plain",
        "^<head",
        "^<head a='>",
        "^<!-- <html><head>",
        "<?xml version='1.0'?><!DOCTYPE html><html><head>^",
        "<html><head >^<head>",
        "<head>^<html>",
        "<!doctype html>^&nbsp;<head>",
        "<!doctype html>^\u{a0}<head>",
        "<!doctype html>^\0<head>",
        "<!doctype html>^<html\0><head>",
    ] {
        let (before, after) = marked.split_once('^').unwrap();
        assert_eq!(
            with_runtime(&format!("{before}{after}")),
            format!("{before}{SCRIPT}{after}"),
            "{marked:?}"
        );
    }
}

#[test]
fn a_comment_ends_where_a_browser_ends_it() {
    for (marked, text) in [
        ("^<!-->x--><head>", "<!-->x--><head>"),
        ("^<!--->x--><head>", "<!--->x--><head>"),
        ("<!--a--!><head>^", "<!--a--!><head>"),
        ("<!a><head>^", "<!a><head>"),
    ] {
        assert_eq!(with_runtime(text), marked.replace('^', SCRIPT), "{text:?}");
    }
}

#[test]
fn without_a_runtime_not_a_byte_changes() {
    for text in ["", "\u{feff}<head>\0\r\n\r", "<b", "<html><head>"] {
        assert_eq!(render(&source("html", text)).unwrap().html, text);
    }
}

#[test]
fn hostile_documents_end() {
    for part in [
        "<",
        "<!--",
        "<html ",
        "<html>",
        "a='",
        "\0",
        "<!doctype ",
        "&",
        "</",
        "é",
        "<html a=b>\n",
        "\r\n",
    ] {
        for text in [
            part.repeat(100_000),
            format!("<html {}", part.repeat(100_000)),
        ] {
            assert_eq!(with_runtime(&text).replacen(SCRIPT, "", 1), text);
        }
    }
    let many: String = (0..50_000).map(|number| format!(" a{number}=1")).collect();
    assert!(with_runtime(&format!("<html{many}><head>x")).contains(&format!("<head>{SCRIPT}x")));
}

#[test]
fn a_document_is_called_by_its_title() {
    for (text, title) in [
        ("<!doctype html><title>A &amp; b</title><p>x", Some("A & b")),
        (
            "<html><head><title> two\n lines </title></head>",
            Some("two lines"),
        ),
        ("<title></title>", None),
        ("<p>none", None),
        (
            "<script>'<title>no</title>'</script><title>yes</title>",
            Some("yes"),
        ),
        ("<svg><title>a drawing's</title></svg>", None),
        ("", None),
    ] {
        let mut source = crate::tests::source("html", text);
        source.title = None;
        let page = crate::render(&source).unwrap();
        assert_eq!(page.title.as_deref(), title, "{text}");
        source.title = Some("Given".to_owned());
        assert_eq!(
            crate::render(&source).unwrap().title.as_deref(),
            Some("Given")
        );
    }
}
