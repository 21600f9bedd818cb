//! Shrinking by the mean of the area that each new pixel covers, row by row, so that a large picture is never in memory as a whole.
//!
//! All is counted in whole numbers: weights add up to [`WHOLE`], so that no sum is above 32 bits. Old rows are added up as they come,
//! which is one product for each value; a row of sums is shrunk to the new width once.

use super::raster::Raster;

/// The weights of all that a new row or column covers, together.
const WHOLE: u32 = 1 << 16;

/// Old rows or columns that a new one covers: the first, and where their weights stand.
#[derive(Clone, Debug)]
struct Covered {
    first: usize,
    weights: Vec<u32>,
}

/// Old columns that each new one covers, with as many weights for all of them: a loop of one length is cheaper.
#[derive(Debug)]
struct Columns {
    first: Vec<usize>,
    weights: Vec<u32>,
    /// Weights of each column.
    count: usize,
}

/// A picture that is being shrunk.
#[derive(Debug)]
pub(super) struct Shrinker {
    from: (u32, u32),
    to: (u32, u32),
    channels: usize,
    columns: Columns,
    rows: Vec<Covered>,
    /// Values of an old row that count by their opacity.
    premultiplied: Vec<u16>,
    /// Sums of the old rows that the new row covers.
    sums: Vec<u32>,
    /// Old rows that have come.
    come: usize,
    /// New rows that are done.
    done: usize,
    pixels: Vec<u8>,
}

impl Shrinker {
    /// Begins a picture of pixels of 1, 3 or 4 bytes. The new size is not larger than the old one.
    pub(super) fn new(from: (u32, u32), to: (u32, u32), channels: usize) -> Self {
        let old_values = from.0 as usize * channels;
        let columns = Columns::new(from.0, to.0);
        Self {
            rows: (0..to.1).map(|y| covered(y, from.1, to.1)).collect(),
            premultiplied: vec![0; if channels == 4 { old_values } else { 0 }],
            // The last columns have weights for more than there is.
            sums: vec![0; old_values + columns.count * channels],
            columns,
            come: 0,
            done: 0,
            pixels: Vec::with_capacity(to.0 as usize * channels * to.1 as usize),
            from,
            to,
            channels,
        }
    }

    /// Adds the next row. One that is too short, or too many, changes nothing.
    pub(super) fn push(&mut self, row: &[u8]) {
        let whole = self.from.0 as usize * self.channels;
        let Some(row) = row.get(..whole).filter(|_| self.done < self.rows.len()) else {
            return;
        };
        if self.from == self.to && self.channels != 4 {
            self.pixels.extend_from_slice(row);
            self.done += 1;
            return;
        }
        if self.channels == 4 {
            premultiply(row, &mut self.premultiplied);
        }
        while let Some(Covered { first, weights }) = self.rows.get(self.done) {
            let Some(weight) = self.come.checked_sub(*first).and_then(|at| weights.get(at)) else {
                break;
            };
            match self.channels {
                4 => add(&mut self.sums, &self.premultiplied, *weight),
                _ => add(&mut self.sums, row, *weight),
            }
            if self.come + 1 < first + weights.len() {
                break;
            }
            self.finish_row();
            self.done += 1;
        }
        self.come += 1;
    }

    /// Returns the picture, once all rows have come. Rows that are missing are empty.
    pub(super) fn finish(mut self) -> Raster {
        let all = self.to.0 as usize * self.to.1 as usize * self.channels;
        self.pixels.resize(all, 0);
        Raster {
            width: self.to.0,
            height: self.to.1,
            channels: self.channels,
            pixels: self.pixels,
        }
    }

    /// Shrinks the sums to the new width, writes them as a row of pixels, and begins anew.
    fn finish_row(&mut self) {
        match self.channels {
            1 => self.write_row::<1>(|[value]| [mean(value)]),
            3 => self.write_row::<3>(|values| values.map(mean)),
            _ => self.write_row::<4>(opaque_colours),
        }
        self.sums.fill(0);
    }

    fn write_row<const N: usize>(&mut self, pixel: impl Fn([u32; N]) -> [u8; N]) {
        // Of 16 bits each: the means of rows of bytes have 8 bits behind the point, those of values with their opacity none.
        let shift = if N == 4 { 16 } else { 8 };
        let half = 1 << (shift - 1);
        for sum in &mut self.sums {
            *sum = (*sum + half) >> shift;
        }
        let (old, _) = self.sums.as_chunks::<N>();
        let begin = self.pixels.len();
        self.pixels.resize(begin + self.to.0 as usize * N, 0);
        let (new, _) = self.pixels[begin..].as_chunks_mut::<N>();
        let weights = self.columns.weights.chunks_exact(self.columns.count);
        for ((first, weights), new) in self.columns.first.iter().zip(weights).zip(new) {
            let values = old[*first..]
                .iter()
                .zip(weights)
                .fold([0_u32; N], |values, (old, weight)| {
                    std::array::from_fn(|at| values[at] + old[at] * weight)
                });
            *new = pixel(values);
        }
    }
}

impl Columns {
    fn new(from: u32, to: u32) -> Self {
        let all: Vec<_> = (0..to).map(|x| covered(x, from, to)).collect();
        let count = all.iter().map(|it| it.weights.len()).max().unwrap_or(1);
        let padded = |mut it: Covered| {
            it.weights.resize(count, 0);
            it.weights
        };
        Self {
            first: all.iter().map(|it| it.first).collect(),
            weights: all.into_iter().flat_map(padded).collect(),
            count,
        }
    }
}

/// Adds an old row to the sums, by eight values in a turn: the loop itself costs as much as a value does.
fn add<T: Copy + Into<u32>>(sums: &mut [u32], row: &[T], weight: u32) {
    let add = |(sum, value): (&mut u32, &T)| *sum += (*value).into() * weight;
    let (rows, rest) = row.as_chunks::<8>();
    let (sums, rest_of_sums) = sums.split_at_mut(rows.len() * 8);
    for (sums, row) in sums.as_chunks_mut::<8>().0.iter_mut().zip(rows) {
        sums.iter_mut().zip(row).for_each(add);
    }
    rest_of_sums.iter_mut().zip(rest).for_each(add);
}

/// Has colours count by their opacity, which counts as white does.
fn premultiply(row: &[u8], into: &mut [u16]) {
    let (pixels, _) = row.as_chunks::<4>();
    let (into, _) = into.as_chunks_mut::<4>();
    for ([red, green, blue, opacity], into) in pixels.iter().zip(into) {
        let part = |value: u8| u16::from(value) * u16::from(*opacity);
        *into = [part(*red), part(*green), part(*blue), part(255)];
    }
}

/// Returns a value of 8 bits behind which 24 more stand, rounded.
fn mean(value: u32) -> u8 {
    low_byte((value + (1 << 23)) >> 24)
}

/// Returns the pixel whose values have counted by their opacity.
fn opaque_colours(values: [u32; 4]) -> [u8; 4] {
    let [red, green, blue, white] = values.map(|value| (value + (1 << 15)) >> 16);
    if white == 0 {
        return [0; 4];
    }
    let colour = |value: u32| low_byte(((value * 255 + white / 2) / white).min(255));
    [
        colour(red),
        colour(green),
        colour(blue),
        low_byte((white + 127) / 255),
    ]
}

/// Returns the old rows or columns that a new one covers; all weights together are [`WHOLE`].
fn covered(new: u32, from: u32, to: u32) -> Covered {
    let (new, from, to) = (u64::from(new), u64::from(from), u64::from(to).max(1));
    // In parts of an old one: there are `to` in each, and each new one covers `from`.
    let (start, end) = (new * from, (new + 1) * from);
    let first = start / to;
    let mut weights = Vec::new();
    let mut before = 0;
    for at in first..end.div_ceil(to) {
        let until = ((at + 1) * to).min(end) - start;
        let sum = (until * u64::from(WHOLE) + from / 2) / from.max(1);
        weights.push(u32::try_from(sum - before).unwrap_or(WHOLE));
        before = sum;
    }
    Covered {
        first: usize::try_from(first).unwrap_or(usize::MAX),
        weights,
    }
}

#[allow(clippy::cast_possible_truncation, reason = "it is below 256")]
fn low_byte(value: u32) -> u8 {
    value as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shrink(from: (u32, u32), to: (u32, u32), channels: usize, pixels: &[u8]) -> Vec<u8> {
        let mut shrinker = Shrinker::new(from, to, channels);
        for row in pixels.chunks_exact(from.0 as usize * channels) {
            shrinker.push(row);
        }
        shrinker.finish().pixels
    }

    #[test]
    fn a_new_pixel_is_the_mean_of_what_it_covers() {
        assert_eq!(shrink((2, 2), (1, 1), 1, &[0, 100, 100, 200]), [100]);
        assert_eq!(shrink((4, 1), (2, 1), 1, &[0, 10, 20, 30]), [5, 25]);
        assert_eq!(shrink((3, 1), (2, 1), 1, &[0, 90, 180]), [30, 150]);
        assert_eq!(shrink((1, 3), (1, 2), 1, &[0, 90, 180]), [30, 150]);
        let same = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
        assert_eq!(shrink((2, 2), (2, 2), 3, &same), same);
    }

    #[test]
    fn what_is_not_seen_does_not_colour() {
        let pixels = [255, 0, 0, 255, 0, 255, 0, 0];
        assert_eq!(shrink((2, 1), (1, 1), 4, &pixels), [255, 0, 0, 128]);
        assert_eq!(shrink((2, 1), (1, 1), 4, &[9; 8]), [9, 9, 9, 9]);
        assert_eq!(shrink((1, 1), (1, 1), 4, &[7, 7, 7, 0]), [0, 0, 0, 0]);
    }

    #[test]
    fn every_row_and_column_has_its_place() {
        for (from, to) in [(7, 3), (100, 99), (1000, 7), (2048, 2048), (5, 1)] {
            for value in [0, 77, 255] {
                let picture = shrink(
                    (from, from),
                    (to, to),
                    1,
                    &vec![value; (from * from) as usize],
                );
                assert_eq!(picture, vec![value; (to * to) as usize], "{from} to {to}");
            }
            let white = shrink(
                (from, from),
                (to, to),
                4,
                &vec![255; (from * from * 4) as usize],
            );
            assert_eq!(white, vec![255; (to * to * 4) as usize], "{from} to {to}");
        }
    }
}
