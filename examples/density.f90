! density.f90 - a density model from Fortran: load the file that examples/density.c or `hollow fit` wrote, evaluate log p and
! draw samples. A row of the table is a column of a Fortran array: x(dim, rows).
!
!     density_f90 [MODEL]
module hollow
   use, intrinsic :: iso_c_binding
   implicit none

   type, bind(c) :: hl_density_column
      type(c_ptr) :: name
      real(c_double) :: mean, deviation
   end type hl_density_column

   interface
      function hl_context_create(options, context) bind(c) result(status)
         import :: c_int, c_ptr
         type(c_ptr), value :: options ! c_null_ptr: the defaults
         type(c_ptr), intent(out) :: context
         integer(c_int) :: status
      end function hl_context_create

      subroutine hl_context_free(context) bind(c)
         import :: c_ptr
         type(c_ptr), value :: context
      end subroutine hl_context_free

      function hl_context_message(context) bind(c) result(text)
         import :: c_ptr
         type(c_ptr), value :: context
         type(c_ptr) :: text
      end function hl_context_message

      function hl_density_load(context, path, model) bind(c) result(status)
         import :: c_int, c_ptr, c_char
         type(c_ptr), value :: context
         character(kind=c_char), intent(in) :: path(*)
         type(c_ptr), intent(out) :: model
         integer(c_int) :: status
      end function hl_density_load

      subroutine hl_density_free(model) bind(c)
         import :: c_ptr
         type(c_ptr), value :: model
      end subroutine hl_density_free

      function hl_density_dim(model) bind(c) result(dim)
         import :: c_ptr, c_size_t
         type(c_ptr), value :: model
         integer(c_size_t) :: dim
      end function hl_density_dim

      function hl_density_get_column(model, index) bind(c) result(column)
         import :: c_ptr, c_size_t, hl_density_column
         type(c_ptr), value :: model
         integer(c_size_t), value :: index ! from 0
         type(hl_density_column) :: column
      end function hl_density_get_column

      function hl_density_logp(model, rows, x, context, logp) bind(c) result(status)
         import :: c_int, c_ptr, c_size_t, c_double
         type(c_ptr), value :: model, context ! context: c_null_ptr if the model has none
         integer(c_size_t), value :: rows
         real(c_double), intent(in) :: x(*)
         real(c_double), intent(out) :: logp(*)
         integer(c_int) :: status
      end function hl_density_logp

      function hl_density_sample(model, seed, first, rows, context, x) bind(c) result(status)
         import :: c_int, c_ptr, c_size_t, c_double, c_int64_t
         type(c_ptr), value :: model, context
         integer(c_int64_t), value :: seed
         integer(c_size_t), value :: first, rows
         real(c_double), intent(out) :: x(*)
         integer(c_int) :: status
      end function hl_density_sample
   end interface

contains

   ! A text of C as one of Fortran.
   function text_of(pointer) result(text)
      type(c_ptr), intent(in) :: pointer
      character(len=:), allocatable :: text
      character(kind=c_char), pointer :: bytes(:)
      integer :: i
      text = ''
      if (.not. c_associated(pointer)) return
      call c_f_pointer(pointer, bytes, [10000])
      do i = 1, size(bytes)
         if (bytes(i) == c_null_char) exit
         text = text // bytes(i)
      end do
   end function text_of
end module hollow

program density
   use, intrinsic :: iso_fortran_env, only: error_unit
   use hollow
   implicit none
   integer(c_size_t), parameter :: samples = 5
   type(c_ptr) :: context, model
   type(hl_density_column) :: column
   character(len=1000) :: path
   real(c_double), allocatable :: x(:, :), logp(:)
   integer(c_size_t) :: dim, i

   path = 'density.hollow'
   if (command_argument_count() > 0) call get_command_argument(1, path)
   if (hl_context_create(c_null_ptr, context) /= 0) stop 1
   call check(hl_density_load(context, trim(path) // c_null_char, model))

   dim = hl_density_dim(model)
   allocate (x(dim, samples), logp(samples))
   do i = 1, dim
      column = hl_density_get_column(model, i - 1)
      x(i, 1) = column%mean
   end do
   call check(hl_density_logp(model, 1_c_size_t, x, c_null_ptr, logp))
   print '(a, f0.6)', 'log p at the mean of all columns: ', logp(1)

   call check(hl_density_sample(model, 7_c_int64_t, 0_c_size_t, samples, c_null_ptr, x))
   call check(hl_density_logp(model, samples, x, c_null_ptr, logp))
   do i = 1, samples
      column = hl_density_get_column(model, 0_c_size_t)
      write (*, '(a, f10.4, a)', advance='no') text_of(column%name), x(1, i), ', '
      column = hl_density_get_column(model, dim - 1)
      print '(a, f10.4, a, f10.4)', text_of(column%name), x(dim, i), ': log p ', logp(i)
   end do
   deallocate (x, logp)
   call hl_density_free(model)
   call hl_context_free(context)

contains

   subroutine check(status)
      integer(c_int), intent(in) :: status
      if (status == 0) return
      write (error_unit, '(a)') text_of(hl_context_message(context))
      stop 1
   end subroutine check
end program density
