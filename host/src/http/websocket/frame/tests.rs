//! The decoder's rules as a table, whole and byte by byte, and what the server writes.

use super::*;

/// A client's frame.
fn client(first: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [0x11, 0x22, 0x33, 0x44];
    let mut frame = vec![first];
    match payload.len() {
        short @ ..=125 => frame.push(0x80 | u8::try_from(short).unwrap()),
        long => {
            frame.push(0x80 | 126);
            frame.extend(u16::try_from(long).unwrap().to_be_bytes());
        }
    }
    frame.extend(mask);
    let masked = payload.iter().zip(mask.iter().cycle());
    frame.extend(masked.map(|(byte, mask)| byte ^ mask));
    frame
}

/// Runs a decoder of messages of at most `most` bytes over these bytes, in pieces of `step`.
fn decode(most: usize, bytes: &[u8], step: usize) -> (Vec<String>, Option<u16>) {
    let mut decoder = Decoder::new(most);
    let mut seen = Vec::new();
    for piece in bytes.chunks(step) {
        let fed = decoder.feed(&mut piece.to_vec(), &mut |event| {
            seen.push(match event {
                Event::Text(text) => text.to_owned(),
                Event::Ping(payload) => format!("ping {}", payload.len()),
                Event::Pong => "pong".to_owned(),
                Event::Close(code) => format!("close {code:?}"),
            });
            Ok(())
        });
        if let Err(close) = fed {
            return (seen, Some(close.code));
        }
    }
    (seen, None)
}

#[track_caller]
fn check(bytes: &[u8], seen: &[&str], close: Option<u16>) {
    for step in [1, 2, 3, 7, bytes.len().max(1)] {
        let (found, code) = decode(300, bytes, step);
        assert_eq!(
            (found.as_slice(), code),
            (seen.map_owned().as_slice(), close),
            "by {step}"
        );
    }
}

trait MapOwned {
    fn map_owned(&self) -> Vec<String>;
}

impl MapOwned for [&str] {
    fn map_owned(&self) -> Vec<String> {
        self.iter().map(|text| (*text).to_owned()).collect()
    }
}

#[test]
fn messages_arrive_however_they_are_cut() {
    let long = "x".repeat(300);
    check(&client(0x81, b"hello"), &["hello"], None);
    check(&client(0x81, b""), &[""], None);
    check(&client(0x81, "häß".as_bytes()), &["häß"], None);
    check(&client(0x81, long.as_bytes()), &[&long], None);
    let parts = [client(0x01, b"he"), client(0x00, b""), client(0x80, b"llo")].concat();
    check(&parts, &["hello"], None);
    // Half of a character in each frame.
    check(
        &[client(0x01, &[0xc3]), client(0x80, &[0xa4])].concat(),
        &["ä"],
        None,
    );
    let between = [
        client(0x01, b"a"),
        client(0x89, b"p"),
        client(0x8a, b""),
        client(0x80, b"b"),
    ];
    check(&between.concat(), &["ping 1", "pong", "ab"], None);
    check(
        &[client(0x81, b"a"), client(0x81, b"b")].concat(),
        &["a", "b"],
        None,
    );
}

#[test]
fn a_close_frame_is_the_last() {
    let after = [
        client(0x88, &1000_u16.to_be_bytes()),
        client(0x81, b"late"),
        vec![0xff; 9],
    ];
    check(&after.concat(), &["close Some(1000)"], None);
    check(&client(0x88, b""), &["close None"], None);
    check(&client(0x88, b"\x0f\xa0bye"), &["close Some(4000)"], None);
    check(&client(0x88, b"\x03"), &[], Some(1002));
    check(&client(0x88, b"\x03\xe8\xff"), &[], Some(1007));
    for code in [0_u16, 999, 1004, 1005, 1006, 1015, 2999, 5000] {
        check(&client(0x88, &code.to_be_bytes()), &[], Some(1002));
    }
}

#[test]
fn what_breaks_the_protocol_is_refused_by_its_head() {
    let long = vec![b'x'; 126];
    for (bytes, code) in [
        // Reserved bits; the first is what compression sets.
        (client(0xc1, b"a"), 1002),
        (client(0xa1, b"a"), 1002),
        (client(0x91, b"a"), 1002),
        // Opcodes that nothing has.
        (client(0x83, b"a"), 1002),
        (client(0x8b, b"a"), 1002),
        // Not masked.
        (vec![0x81, 0x01, b'a'], 1002),
        // Control frames in parts, or too long.
        (client(0x09, b""), 1002),
        (client(0x89, &long), 1002),
        // A continuation of nothing, and a message within a message.
        (client(0x80, b"a"), 1002),
        ([client(0x01, b"a"), client(0x81, b"b")].concat(), 1002),
        ([client(0x01, b"a"), client(0x82, b"b")].concat(), 1002),
        // Binary, whole and in parts.
        (client(0x82, b"a"), 1003),
        (client(0x02, b"a"), 1003),
        // No UTF-8, whole and in parts.
        (client(0x81, &[0xff]), 1007),
        ([client(0x01, &[0xc3]), client(0x80, b"x")].concat(), 1007),
    ] {
        check(&bytes, &[], Some(code));
    }
}

#[test]
fn a_message_has_its_most_however_it_is_cut() {
    let at_most = [client(0x01, &[b'x'; 200]), client(0x80, &[b'x'; 100])].concat();
    assert_eq!(decode(300, &at_most, 64).1, None);
    let above = [client(0x01, &[b'x'; 200]), client(0x80, &[b'x'; 101])].concat();
    check(&above, &[], Some(1009));
    check(&client(0x81, &[b'x'; 301]), &[], Some(1009));
    // Refused before any of it is there, whatever it says.
    check(&[0x81, 0xfe, 0x01, 0x2d], &[], Some(1009));
    check(&[&[0x81, 0xff][..], &[0xff; 8]].concat(), &[], Some(1009));
    check(
        &[&[0x81, 0xff][..], &u64::from(u32::MAX).to_be_bytes()].concat(),
        &[],
        Some(1009),
    );
}

#[test]
fn nothing_is_held_between_messages() {
    let mut decoder = Decoder::new(1 << 20);
    let message = [client(0x01, &[b'x'; 5_000]), client(0x80, &[b'x'; 5_000])].concat();
    for piece in message.chunks(100) {
        decoder.feed(&mut piece.to_vec(), &mut |_| Ok(())).unwrap();
    }
    assert_eq!((decoder.partial.capacity(), decoder.message), (0, None));
}

#[test]
fn what_the_server_writes() {
    assert_eq!(&text_frame("hi")[..], [0x81, 2, b'h', b'i']);
    assert_eq!(&text_frame(&"x".repeat(125))[..2], [0x81, 125]);
    assert_eq!(&text_frame(&"x".repeat(126))[..4], [0x81, 126, 0, 126]);
    assert_eq!(
        &text_frame(&"x".repeat(65_535))[..4],
        [0x81, 126, 0xff, 0xff]
    );
    assert_eq!(
        &text_frame(&"x".repeat(65_536))[..10],
        [0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]
    );
    assert_eq!(&ping()[..], [0x89, 0]);
    assert_eq!(&pong(b"p")[..], [0x8a, 1, b'p']);
    assert_eq!(&close_answer(None)[..], [0x88, 0]);
    assert_eq!(&close_answer(Some(1000))[..], [0x88, 2, 0x03, 0xe8]);
    assert_eq!(close(Close::SLOW)[2..4], 1013_u16.to_be_bytes());
}

#[test]
fn reasons_fit_into_a_close_frame() {
    for reason in [
        Close::STOPPED,
        Close::ENDED,
        Close::SILENT,
        Close::FLOOD,
        Close::SLOW,
        Close::DISABLED,
    ] {
        assert!(reason.reason.len() <= CONTROL - 2, "{reason:?}");
    }
}
