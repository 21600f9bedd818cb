-- Answer the survey: a place (desk, sofa, train, cafe or outside), a rating from 1 to 5, and a comment or nothing
INSERT INTO answers (place, rating, comment) VALUES (:place, :rating, nullif(trim(:comment), ''))
