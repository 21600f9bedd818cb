//! Shrinking by the mean of the area that each new pixel covers, row by row, so that a large picture is never in memory as a whole.

use super::raster::Raster;

/// A picture that is being shrunk.
#[derive(Debug)]
pub(super) struct Shrinker {
    from: (u32, u32),
    to: (u32, u32),
    channels: usize,
    /// First old pixel of each new column, with the weights of all that it covers.
    columns: Vec<(usize, Vec<f32>)>,
    /// Sums of the new row.
    sums: Vec<f32>,
    /// An old row, shrunk to the new width.
    row: Vec<f32>,
    /// Old rows that have come.
    rows: u32,
    pixels: Vec<u8>,
}

impl Shrinker {
    /// Begins a picture of pixels of 1, 3 or 4 bytes. The new size is not larger than the old one.
    pub(super) fn new(from: (u32, u32), to: (u32, u32), channels: usize) -> Self {
        let values = to.0 as usize * channels;
        Self {
            columns: (0..to.0).map(|x| weights(x, from.0, to.0)).collect(),
            sums: vec![0.0; values],
            row: vec![0.0; values],
            rows: 0,
            pixels: Vec::with_capacity(values * to.1 as usize),
            from,
            to,
            channels,
        }
    }

    /// Adds the next row. One that is too short, or too many, changes nothing.
    pub(super) fn push(&mut self, row: &[u8]) {
        let whole = self.from.0 as usize * self.channels;
        let Some(row) = row.get(..whole).filter(|_| self.rows < self.from.1) else {
            return;
        };
        self.shrink_row(row);
        let scale = f64::from(self.from.1) / f64::from(self.to.1);
        let (top, bottom) = (f64::from(self.rows), f64::from(self.rows + 1));
        self.rows += 1;
        let done = self.pixels.len() / (self.to.0 as usize * self.channels).max(1);
        // The end of the new row that is being summed up.
        let end = (done as f64 + 1.0) * scale;
        let is_last = self.rows == self.from.1;
        if bottom < end && !is_last {
            self.add(1.0);
            return;
        }
        self.add(narrow(end.min(bottom) - top));
        self.finish_row();
        let rest = bottom - end;
        if rest > 0.0 && !is_last {
            self.add(narrow(rest));
        }
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

    /// Shrinks a row to the new width. Colours count by their opacity.
    fn shrink_row(&mut self, row: &[u8]) {
        let channels = self.channels;
        for (x, (first, weights)) in self.columns.iter().enumerate() {
            let mut sums = [0.0_f32; 4];
            let covered = row[first * channels..].chunks_exact(channels);
            for (pixel, weight) in covered.zip(weights) {
                let weight = match channels {
                    4 => {
                        let opacity = f32::from(pixel[3]) * weight;
                        sums[3] += opacity;
                        opacity / 255.0
                    }
                    _ => *weight,
                };
                for (sum, value) in sums.iter_mut().take(3).zip(pixel) {
                    *sum += f32::from(*value) * weight;
                }
            }
            self.row[x * channels..(x + 1) * channels].copy_from_slice(&sums[..channels]);
        }
    }

    /// Adds the shrunk row to the sums.
    fn add(&mut self, weight: f32) {
        for (sum, value) in self.sums.iter_mut().zip(&self.row) {
            *sum += value * weight;
        }
    }

    /// Writes the sums as a row of pixels, and begins anew.
    fn finish_row(&mut self) {
        let rows = narrow(f64::from(self.from.1) / f64::from(self.to.1));
        for sums in self.sums.chunks_exact_mut(self.channels) {
            let opacity = match sums {
                [_, _, _, opacity] => Some(*opacity / rows),
                _ => None,
            };
            for (channel, sum) in sums.iter_mut().enumerate() {
                let mean = *sum / rows;
                let value = match opacity {
                    Some(opacity) if channel < 3 && opacity > 0.0 => mean * 255.0 / opacity,
                    _ => mean,
                };
                self.pixels.push(to_byte(value));
                *sum = 0.0;
            }
        }
    }
}

/// Returns the old pixels that a new column covers: the first, and a weight for each; all weights together are 1.
fn weights(x: u32, from: u32, to: u32) -> (usize, Vec<f32>) {
    let scale = f64::from(from) / f64::from(to);
    let (start, end) = (f64::from(x) * scale, f64::from(x + 1) * scale);
    let first = start.floor();
    let mut weights = Vec::new();
    let mut at = first;
    while at < end && at < f64::from(from) {
        let covered = (at + 1.0).min(end) - at.max(start);
        if covered > 1e-9 {
            weights.push(narrow(covered / scale));
        } else if weights.is_empty() {
            weights.push(0.0);
        }
        at += 1.0;
    }
    (whole(first), weights)
}

#[allow(clippy::cast_possible_truncation, reason = "less exact is enough")]
fn narrow(number: f64) -> f32 {
    number as f32
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a whole number of pixels"
)]
fn whole(number: f64) -> usize {
    number as usize
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is brought between both ends"
)]
fn to_byte(value: f32) -> u8 {
    (value + 0.5).clamp(0.0, 255.0) as u8
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
            let picture = shrink((from, from), (to, to), 1, &vec![77; (from * from) as usize]);
            assert_eq!(picture, vec![77; (to * to) as usize], "{from} to {to}");
        }
    }
}
