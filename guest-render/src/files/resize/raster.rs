//! A small picture in memory.

/// Pixels of a picture, row by row: grey, colours, or colours with their opacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Raster {
    pub(super) width: u32,
    pub(super) height: u32,
    /// Bytes of a pixel: 1, 3 or 4.
    pub(super) channels: usize,
    pub(super) pixels: Vec<u8>,
}

impl Raster {
    /// Turns the picture upright, by its orientation as EXIF has it.
    pub(super) fn upright(self, orientation: u8) -> Self {
        if !(2..=8).contains(&orientation) {
            return self;
        }
        let (width, height) = (self.width as usize, self.height as usize);
        let is_turned = orientation >= 5;
        let (new_width, new_height) = match is_turned {
            true => (height, width),
            false => (width, height),
        };
        let mut pixels = Vec::with_capacity(self.pixels.len());
        for y in 0..new_height {
            for x in 0..new_width {
                let (from_x, from_y) = match orientation {
                    2 => (width - 1 - x, y),
                    3 => (width - 1 - x, height - 1 - y),
                    4 => (x, height - 1 - y),
                    5 => (y, x),
                    6 => (y, height - 1 - x),
                    7 => (width - 1 - y, height - 1 - x),
                    _ => (width - 1 - y, x),
                };
                let at = (from_y * width + from_x) * self.channels;
                pixels.extend_from_slice(&self.pixels[at..at + self.channels]);
            }
        }
        let (width, height) = match is_turned {
            true => (self.height, self.width),
            false => (self.width, self.height),
        };
        Self {
            width,
            height,
            pixels,
            ..self
        }
    }

    /// Whether a pixel lets through what is behind it.
    pub(super) fn is_transparent(&self) -> bool {
        self.channels == 4 && self.pixels.chunks_exact(4).any(|pixel| pixel[3] != 255)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_orientation_is_turned_upright() {
        // The letter F, as a camera with this orientation stores it, and upright.
        let upright = Raster {
            width: 2,
            height: 3,
            channels: 1,
            pixels: vec![1, 2, 3, 4, 5, 6],
        };
        for (orientation, width, stored) in [
            (1, 2, [1, 2, 3, 4, 5, 6]),
            (2, 2, [2, 1, 4, 3, 6, 5]),
            (3, 2, [6, 5, 4, 3, 2, 1]),
            (4, 2, [5, 6, 3, 4, 1, 2]),
            (5, 3, [1, 3, 5, 2, 4, 6]),
            (6, 3, [2, 4, 6, 1, 3, 5]),
            (7, 3, [6, 4, 2, 5, 3, 1]),
            (8, 3, [5, 3, 1, 6, 4, 2]),
        ] {
            let picture = Raster {
                width,
                height: 6 / width,
                channels: 1,
                pixels: stored.to_vec(),
            };
            assert_eq!(picture.upright(orientation), upright, "{orientation}");
        }
    }
}
