//! Languages are named where they are sure, and left out where they are not.

use super::common_words::{LANGUAGES, WORDS};
use super::detect;

#[test]
fn the_words_are_sorted_and_each_language_has_many() {
    assert!(WORDS.windows(2).all(|pair| pair[0].0 < pair[1].0));
    for (language, tag) in LANGUAGES.iter().enumerate() {
        let words = WORDS.iter().filter(|(_, of)| of >> language & 1 == 1);
        assert!(words.count() > 30, "{tag}");
    }
}

#[test]
fn languages_are_told_apart() {
    for (language, text) in [
        (
            "de",
            "Guten Tag, das ist ein kurzer Text über die Reise an den See.",
        ),
        (
            "de",
            "Protokoll der Sitzung vom Montag. Anwesend sind alle, die auch im Verteiler stehen. Wir haben beschlossen, dass der Termin nicht verschoben wird.",
        ),
        (
            "en",
            "This is a short text about the trip to the lake, and it has all that is needed.",
        ),
        (
            "fr",
            "Bonjour, ceci est un texte court sur le voyage au lac avec toute la famille.",
        ),
        (
            "es",
            "Hola, este es un texto corto sobre el viaje al lago con toda la familia.",
        ),
        (
            "pt",
            "Olá, este é um texto curto sobre a viagem ao lago com toda a família, mas não é para você.",
        ),
        (
            "it",
            "Questo è un breve testo sul viaggio al lago con tutta la famiglia, ma non è per gli altri.",
        ),
        (
            "nl",
            "Dit is een korte tekst over de reis naar het meer met de hele familie.",
        ),
        (
            "sv",
            "Det här är en kort text om resan till sjön och det är inte så mycket mer än så, men jag kan skriva mer.",
        ),
        (
            "da",
            "Det her er en kort tekst om rejsen til søen, og det er ikke meget mere end det, hvad jeg også blev spurgt om efter.",
        ),
        (
            "nb",
            "Dette er en kort tekst om turen til sjøen, og det er ikke mye mer enn det, hva jeg også ble spurt om etter.",
        ),
        (
            "fi",
            "Tämä on lyhyt teksti matkasta järvelle, ja se on kaikki mitä siitä voi sanoa, mutta ei vielä nyt.",
        ),
        (
            "pl",
            "To jest krótki tekst o podróży nad jezioro i nie ma w nim nic, czego by nie było.",
        ),
        (
            "cs",
            "Toto je krátký text o cestě k jezeru, který je také pro ty, co tam ještě nebyli, ale už jsou.",
        ),
        (
            "hu",
            "Ez egy rövid szöveg az utazásról, és nem is több annál, de már itt van minden.",
        ),
        (
            "tr",
            "Bu göl gezisi için kısa bir metin ve çok daha fazlası değil ama olduğu gibi.",
        ),
        (
            "id",
            "Ini adalah teks singkat tentang perjalanan ke danau dengan keluarga yang tidak akan kami lupakan.",
        ),
        (
            "vi",
            "Đây là một văn bản ngắn về chuyến đi và không có gì khác cho những người trong nhà.",
        ),
        ("ar", "مرحبا، هذا نص قصير عن الرحلة إلى البحيرة."),
        (
            "fa",
            "این یک متن کوتاه درباره سفر به دریاچه است که برای همه نوشته شده.",
        ),
        ("he", "שלום, זה טקסט קצר על הטיול לאגם."),
        (
            "ru",
            "Это короткий текст о поездке на озеро, где мы были вчера.",
        ),
        (
            "uk",
            "Це короткий текст про подорож до озера, і він є для всіх.",
        ),
        (
            "bg",
            "Това е кратък текст за пътуването до езерото, което ще опишем.",
        ),
        ("el", "Αυτό είναι ένα σύντομο κείμενο."),
        (
            "ja",
            "# メモ\nこれは湖への旅行についての短い文章です。Rust と SQLite を使います。",
        ),
        ("ja", "会議メモ 2026年"),
        ("zh", "这是关于湖边旅行的短文，我们使用数据库。"),
        ("ko", "이것은 호수 여행에 대한 짧은 글입니다."),
        ("th", "นี่คือข้อความสั้น ๆ เกี่ยวกับการเดินทาง"),
        ("hi", "यह झील की यात्रा के बारे में एक छोटा लेख है और इसमें सब कुछ है।"),
    ] {
        assert_eq!(detect(text), Some(language), "{text}");
    }
}

#[test]
fn what_is_not_sure_is_nothing() {
    for text in [
        "",
        "123 456",
        "Hello",
        "npm install svc",
        "foo bar baz qux",
        "die",
        "fn main() { let x = 1; }",
        "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore.",
        "Kubernetes Docker Terraform Ansible",
        "α β γ",
    ] {
        assert_eq!(detect(text), None, "{text}");
    }
}
